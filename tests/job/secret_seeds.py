"""Private values of many kinds in both languages, each in the words that people and programs use.

Every value here is invented; those with a check digit have the right one.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Seed:
    """`said` holds `secret`, or the parts of it that `also` lists."""

    kind: str
    secret: str
    said: str
    also: tuple[str, ...] = ()

    @property
    def hunted(self) -> tuple[str, ...]:
        """Everything that must be found nowhere."""
        return (self.secret, *self.also)


# Built from parts, so that no scanner of repositories takes them for real ones.
_AWS_ID = "AKIA" + "QZ7XW2MNB5TR4KLP"
_AWS_SECRET = "h8Kq2Lw9Zx" + "Vb4Nm6Rt1Yp3Gd5Js7Fc0QeUaIoTyBhXkMwP"[:30]
_GITHUB = "ghp_" + "a8Bc2De4Fg6Hi8Jk0Lm2No4Pq6Rs8Tu0Vw2X"
_GITLAB = "glpat-" + "Zk3mQ9xW7vB2nL5pR8tY"
_SLACK = "xoxb-" + "483920175566-5820193746582-aKq8Zw3Lx9Vb2Nm7Rt"
_STRIPE = "sk_live_" + "9sKq3Lw8Zx2Vb7Nm4Rt1Yp6G"
_OPENAI = "sk-proj-" + "Zq8Lw3Kx9Vb2Nm7Rt4Yp1Gd6Js5Fc0Qe"
_GOOGLE = "AIza" + "SyD3kQ9xW7vB2nL5pR8tY1gH4jM6cF0eUaI"
_JWT = (
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
    "eyJzdWIiOiI4ODIxMDA0IiwibmFtZSI6InpoYW8ifQ.k3Zq8Lw9Vb2Nm7Rt4Yp1Gd6Js5Fc0QeUaIoTyBhXkM"
)
_ALIYUN_ID = "LTAI" + "5tKq8Lw3Zx9Vb2Nm7Rt4Yp1G"
_ALIYUN_SECRET = "Wk8Zq3Lx9Vb2Nm7Rt4Yp1Gd6Js5Fc0"
_TENCENT_ID = "AKID" + "z8krbsJ5yKBZQpn74WFkmLPx3EXAMPLEa"
_HUGGING = "hf_" + "aKqZwLxVbNmRtYpGdJsFcQeUaIoTyBhXkM"
PEM_LINES = (
    "MIIEowIBAAKCAQEAz4kQ8Lw3Zx9Vb2Nm7Rt4Yp1Gd6Js5Fc0QeUaIoTyBhXkMwPq",
    "Rs8Tu0Vw2XyZ1aB3cD5eF7gH9iJ0kL2mN4oP6qR8sT0uV2wX4yZ6aB8cD0eF2gH4",
    "iJ6kL8mN0oP2qR4sT6uV8wX0yZ==",
)
_PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\n" + "\n".join(PEM_LINES) + "\n-----END RSA PRIVATE KEY-----"
)

SEEDS: tuple[Seed, ...] = (
    Seed("email", "zhao.min88@corpmail.example.com", "bounce for zhao.min88@corpmail.example.com"),
    Seed("email zh", "sun_li77@post.example.cn", "请发到邮箱sun_li77@post.example.cn，谢谢"),
    Seed("email url", "qian%40shop.example.org", "GET /u?mail=qian%40shop.example.org 200"),
    Seed("mobile", "13917824563", "短信发送失败，手机号13917824563无响应"),
    Seed("mobile grouped", "139-2264-7815", "call me at 139-2264-7815 please", ("13922647815",)),
    Seed(
        "mobile intl", "+86 150 3318 4472", "phone +86 150 3318 4472 unreachable", ("15033184472",)
    ),
    Seed("mobile in name", "18655203971", "profile user_18655203971 was locked"),
    Seed("mobile in url", "17788230461", "GET /sms?to=%2B8617788230461&n=1 500"),
    Seed("landline", "021-58376412", "公司座机021-58376412打不通"),
    Seed("landline bare", "58812277", "联系电话：58812277"),
    Seed("us phone", "(415) 762-9031", "customer left (415) 762-9031", ("762-9031",)),
    Seed("uk phone", "+44 20 7183 8750", "转接 +44 20 7183 8750 失败"),
    Seed("id 18", "110105199003078318", "实名认证失败：110105199003078318"),
    Seed("id 15", "310110720514321", "旧身份证号码310110720514321无法识别"),
    Seed("id in groups", "440308 19851123 4418", "证件号 440308 19851123 4418 重复"),
    Seed("passport", "E87214563", "护照号E87214563已过期"),
    Seed("passport en", "X4429187", "passport number: X4429187 rejected"),
    Seed("ssn", "512-44-8093", "tax form for 512-44-8093 failed"),
    Seed("ssn named", "512448094", "SSN: 512448094 does not match"),
    Seed("card", "6222 0210 0111 6245 702", "转账到6222 0210 0111 6245 702失败"),
    Seed("visa", "4539578763621486", "charge declined for 4539578763621486"),
    Seed("card named", "6228480402564890018", "银行卡号：6228480402564890018"),
    Seed("iban", "DE89 3704 0044 0532 0130 00", "refund to DE89 3704 0044 0532 0130 00 failed"),
    Seed("iban compact", "GB82WEST12345698765432", "IBAN GB82WEST12345698765432 refused"),
    Seed("cvv", "8317", "card check failed, cvv: 8317"),
    Seed("plate", "沪A·7K356", "停车场识别错误，车牌沪A·7K356"),
    Seed("plate green", "粤BD68421", "粤BD68421 进场失败"),
    Seed("wechat", "lu_xiaoyu1990", "加我微信号：lu_xiaoyu1990"),
    Seed("wxid", "wxid_8k2mzq71xv4n22", "message from wxid_8k2mzq71xv4n22 was dropped"),
    Seed("qq", "827364519", "我的QQ号827364519登不上"),
    Seed("ipv4", "203.0.113.87", "connection refused by 203.0.113.87:8443"),
    Seed("ipv4 host", "ip-10-31-7-42", "node ip-10-31-7-42.ec2.internal is down"),
    Seed("ipv6", "2001:db8:4f3a::7c2e:91", "peer 2001:db8:4f3a::7c2e:91 left"),
    Seed("aws id", _AWS_ID, f"AccessDenied for {_AWS_ID}"),
    Seed("aws secret", _AWS_SECRET, f"aws_secret_access_key = {_AWS_SECRET}"),
    Seed("aws pair", _AWS_SECRET, f"creds {_AWS_ID} / {_AWS_SECRET} rejected"),
    Seed("aliyun id", _ALIYUN_ID, f"InvalidAccessKeyId {_ALIYUN_ID}"),
    Seed("aliyun secret", _ALIYUN_SECRET, f"AccessKeySecret: {_ALIYUN_SECRET}"),
    Seed("tencent", _TENCENT_ID, f"SecretId={_TENCENT_ID} not found"),
    Seed("github", _GITHUB, f"remote rejected {_GITHUB}"),
    Seed("gitlab", _GITLAB, f"clone with {_GITLAB} failed"),
    Seed("slack", _SLACK, f"post failed: {_SLACK}"),
    Seed(
        "slack hook",
        "B8Z3KQ1LX/9Vb2Nm7Rt4Yp1Gd6Js5Fc0Qe",
        "POST https://hooks.slack.com/services/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 404",
    ),
    Seed("stripe", _STRIPE, f"key {_STRIPE} revoked"),
    Seed("openai", _OPENAI, f"Incorrect API key provided: {_OPENAI}."),
    Seed("google", _GOOGLE, f"GET /maps/api?key={_GOOGLE} 403"),
    Seed("hugging face", _HUGGING, f"401 for {_HUGGING}"),
    Seed("jwt", _JWT, f"token expired: {_JWT}"),
    Seed("bearer", "q8Lw3Kx9Vb2Nm7Rt", "Authorization: Bearer q8Lw3Kx9Vb2Nm7Rt"),
    Seed("basic", "bHVjeTpTd29yZGZpc2gyMQ==", "Authorization: Basic bHVjeTpTd29yZGZpc2gyMQ=="),
    Seed(
        "basic pair",
        "cm9vdDpCbHVlQ2FyNw==",
        'name="Authorization" value="Basic cm9vdDpCbHVlQ2FyNw=="',
    ),
    Seed("api key", "7f3a9c2e5b8d1460", "X-Api-Key: 7f3a9c2e5b8d1460 unknown"),
    Seed("cookie", "s3ss10nv4lu3", "Cookie: sid=s3ss10nv4lu3; theme=dark"),
    Seed(
        "set-cookie",
        "9b1deb4d3b7d4bad",
        "Set-Cookie: JSESSIONID=9b1deb4d3b7d4bad; Path=/; HttpOnly",
    ),
    Seed("password", "Tr0ub4dor&3", "login failed password=Tr0ub4dor&3 attempts=2"),
    Seed("password json", "N3ver-G0nna!", 'body {"user":"li","password":"N3ver-G0nna!"}'),
    Seed("password nested", "G1ve-Y0u-Up", 'payload "{\\"passwd\\":\\"G1ve-Y0u-Up\\"}"'),
    Seed("password yaml", "b1gSecretVal", "config:\n  db_password: b1gSecretVal\n  port: 5432"),
    Seed("password xml", "Xm1Passw0rt", "<login><password>Xm1Passw0rt</password></login>"),
    Seed("password url", "UrlPa55w0rt", "GET /login?user=a&password=UrlPa55w0rt&next=/ 401"),
    Seed("password encoded", "EncPa55w0rt", "GET /cb?q=password%3DEncPa55w0rt%26x%3D1 401"),
    Seed("password zh", "Mima9981x", "登录密码：Mima9981x，无法登录"),
    Seed("password zh said", "qwe778899", "我的密码是qwe778899，还是登不上"),
    Seed("password zh changed", "newPwd2026", "密码已经改成了newPwd2026"),
    Seed("password zh next", "asdf2468", "密码 asdf2468 提示错误"),
    Seed("password said", "hunter2025", "my password is hunter2025 and it fails"),
    Seed("password word", "swordfish", "my password is swordfish."),
    Seed("password next", "zebra4417", "I use password zebra4417 for it"),
    Seed("password flag", "fl4gPassw0rt", "ran backup --password fl4gPassw0rt --all"),
    Seed("password dollar", "$ecretStart9", "password=$ecretStart9 rejected"),
    Seed("passphrase", "purple monkey 42", "passphrase='purple monkey 42' is wrong"),
    Seed(
        "connection", "dbPa55!word", "cannot connect postgres://svc:dbPa55!word@db.internal:5432/x"
    ),
    Seed("connection at", "p@ss:w0rd9", "redis://:p@ss:w0rd9@cache.internal:6379/0 timed out"),
    Seed("connection ado", "AdoPa55w0rt", "Server=db;User Id=sa;Password=AdoPa55w0rt;Timeout=30"),
    Seed("private key", PEM_LINES[0], f"dumped {_PEM} to log", PEM_LINES[1:]),
    Seed("session token", "b8f1c0a97d24e653", 'session_token="b8f1c0a97d24e653" expired'),
    Seed("otp zh", "739154", "【银行】您的验证码是739154，5分钟内有效"),
    Seed("otp zh next", "640238", "收到验证码 640238 但提示错误"),
    Seed("otp en", "917340", "Your verification code is 917340, valid 5 minutes"),
    Seed("otp before", "528106", "528106 is your Acme login code"),
    Seed("pin", "7305", "terminal asked twice, PIN: 7305"),
    Seed(
        "link",
        "c2f8a1d94b7e60358fe2",
        "mail held https://shop.example.com/reset-password/c2f8a1d94b7e60358fe2 link",
    ),
    Seed(
        "link parameter",
        "Zk8Qm3Lx9Vb2Nm7R",
        "open https://shop.example.com/verify?code=Zk8Qm3Lx9Vb2Nm7R&lang=en",
    ),
)

READABLE = (
    "ORD-20260314-000917",
    "550e8400-e29b-41d4-a716-446655440000",
    "4bf92f3577b34da6a3ce929d0e0e4736",
    "v2.14.3",
    "ERR_5003",
    "1,299.00",
    "2026-03-14",
    "65020ms",
)
"""What must stay as it is: an order, trace ids, a version, an error code, an amount, times."""
