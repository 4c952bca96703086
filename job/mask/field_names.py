"""What a field holds that is private as a whole, by its name: `password`, `clientSecret`, 手机号.

Invariant: a field is judged by its own name, whatever its case and joints; a value that cannot be
what the name says (a count, a flag, a word such as "none") is left to be looked into like any text.
"""

from __future__ import annotations

import re
from functools import lru_cache

from job.words import listed

_PASSWORDS = listed(
    "password, passwd, passphrase, passcode, pwd, passwords, 密码, 口令, 密碼, 支付密码, 登录密码"
)
_PIN = frozenset(
    listed(
        "pin, pincode, cvv, cvv2, cvc, cvc2, otp, otpcode, smscode, verifycode, verificationcode",
        "authcode, captcha, securitycode, pass, psw, pw, 验证码, 校验码, 动态码, 动态密码, 安全码",
        "短信验证码",
    )
)
_SECRETS = listed("token, secret, secrets, credential, credentials, sessid, 令牌, 密钥, 凭证")
_KEYS = re.compile(
    r"(?:api|access|secret|private|app|auth|account|encryption|signing|master|service|license"
    r"|client|subscription|shared|storage|consumer)keys?\Z"
)
_HEADERS = frozenset(listed("authorization, proxyauthorization, cookie, setcookie, connectsid"))
_PAPERS = frozenset(
    listed(
        "passport, passportno, passportnumber, idcard, idcardno, idcardnumber, idno, idnumber",
        "identitycard, identityno, nationalid, ssn, socialsecuritynumber, taxid, licenseplate",
        "platenumber, plateno, carplate, driverlicense, driverslicense, 身份证, 身份证号",
        "身份证号码, 证件号, 证件号码, 护照, 护照号, 护照号码, 车牌, 车牌号, 驾驶证号, 社保号",
    )
)
_CARDS = frozenset(
    listed(
        "card, cardno, cardnumber, cardnum, bankcard, bankcardno, bankaccount, bankaccountno, iban",
        "accountnumber, creditcard, creditcardnumber, 卡号, 银行卡, 银行卡号, 银行账号, 信用卡号",
    )
)
_PHONES = frozenset(
    listed(
        "phone, phoneno, phonenumber, phonenum, mobile, mobileno, mobilenumber, mobilephone, tel",
        "telephone, telno, cellphone, cell, contactphone, userphone, whatsapp, wechat, wechatid",
        "wechatno, wxid, weixin, qq, qqnumber, telegram, fax, 电话, 电话号码, 手机, 手机号",
        "手机号码, 联系电话, 联系方式, 微信, 微信号, 座机, 传真",
    )
)
_EMAILS = frozenset(listed("email, mail, emailaddress, useremail, 邮箱, 电子邮箱, 邮件地址"))


@lru_cache(maxsize=4096)
def kind_of(name: str) -> str | None:
    """What kind of private value a field of this name holds; "password" is a secret of which also
    a few digits are one. None for other names."""
    word = "".join(c for c in name.lower() if c.isalnum())
    if word.endswith(_PASSWORDS) or word in _PIN:
        return "password"
    if word.endswith(_SECRETS) or word in _HEADERS or _KEYS.search(word):
        return "secret"
    for names, kind in ((_PAPERS, "id_card"), (_CARDS, "card"), (_PHONES, "phone")):
        if word in names:
            return kind
    return "email" if word in _EMAILS else None


_NOTHING = re.compile(
    r"(?i)(?:null|none|nil|true|false|yes|no|n/a|na|undefined|unknown|missing|empty|invalid|required"
    r"|expired|redacted|masked|hidden|[*xX.#•-]+)\Z"
)


def fits(kind: str, value: str) -> bool:
    """Whether `value` can be what a field of this kind holds."""
    if _NOTHING.match(value):
        return False
    digits = sum(map(str.isdigit, value))
    match kind:
        case "password":
            return len(value) >= 3
        case "secret":
            return len(value) >= 4 and not (value.isdigit() and len(value) < 6)
        case "phone":
            return (
                5 <= len(value) <= 32 and (digits >= 5 or not value.isalpha()) and " " not in value
            )
        case "email":
            return "@" in value and " " not in value
        case _:
            return 6 <= len(value) <= 40 and digits >= 4
