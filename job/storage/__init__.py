"""Files and folders of a run, on this machine or on object storage.

place.py    a file or folder, with pathlib's names
store.py    the file systems behind places
hold.py     who holds the folder of a run; lease.py: on object storage
"""
