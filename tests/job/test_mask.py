"""What is private becomes an alias, the same in every run; what is not stays."""

from __future__ import annotations

import multiprocessing
import re
import stat
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from job.mask.masking import ALIAS, Masker, load_key

KEY = b"k" * 32
MASKER = Masker(KEY)


@pytest.mark.parametrize(
    ("text", "kind", "private"),
    [
        ("write to zhang.san+test@mail.example.com.cn please", "email", "zhang.san"),
        ("邮箱是li_si@example.com，谢谢", "email", "li_si"),
        ("全角 ｗａｎｇ＠example.com", "email", "ｗａｎｇ"),
        ("电话13812345678，晚上打", "phone", "13812345678"),
        ("手机 138-1234-5678", "phone", "5678"),
        ("+86 138 1234 5678 is mine", "phone", "1234"),
        ("全角１３８１２３４５６７８号", "phone", "１３８"),
        ("座机 010-62345678 转 801", "phone", "62345678"),
        ("(0755) 6234-5678", "phone", "6234"),
        ("my number is (977) 625-2661", "phone", "625"),
        ("977-625-2661", "phone", "977"),
        ("call +1 977 625 2661", "phone", "977"),
        ("Phone number is 9776252661.", "phone", "9776252661"),
        ("+44 20 7946 0958", "phone", "7946"),
        ("身份证11010519491231002X", "id_card", "110105"),
        ("SSN 123-45-6789", "id_card", "123-45"),
        ("card 4111 1111 1111 1111", "card", "4111"),
        ("卡号：5555555555554444", "card", "5555"),
        ("amex 378282246310005", "card", "378282"),
        ("key sk-abc123def456ghi789jkl0", "secret", "abc123"),
        ("AKIAIOSFODNN7EXAMPLE was used", "secret", "AKIA"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "secret", "ghp_"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "secret", "wJalr"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmN", "secret", "eyJ"),
        ("Authorization: Bearer abc123def456", "secret", "abc123"),
        ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "secret", "dXNl"),
        ("password=hunter2", "secret", "hunter2"),
        ('{"passwd": "my pass phrase"}', "secret", "phrase"),
        ('payload {\\"password\\":\\"abc123\\"}', "secret", "abc123"),
        ("登录密码：Abc12345，请勿外传", "secret", "Abc12345"),
        ("我的密码是abc12345", "secret", "abc12345"),
        ("令牌: zxcv0987zxcv", "secret", "zxcv"),
        ("api-key: 0a1b2c3d4e5f", "secret", "0a1b"),
        ("Ocp-Apim-Subscription-Key: 0123456789abcdef", "secret", "0123"),
        ("postgres://admin:s3cr3t@db.example.com/x", "secret", "s3cr3t"),
        ("Cookie: sid=abc; theme=dark", "secret", "sid=abc"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "secret", "MIIE"),
        ("connection from 10.190.173.170:9000", "ip", "10.190"),
        ("msra-sa-41/10.190.173.170 is down", "ip", "10.190"),
        ("block BP-13473-10.190.173.170-14449", "ip", "10.190"),
        ("peer 2001:db8::8a2e:370:7334 left", "ip", "2001"),
    ],
)
def test_private_values_are_replaced(text: str, kind: str, private: str) -> None:
    masked, counts = MASKER.mask(text)
    assert counts == {kind: 1}
    assert private not in masked
    assert re.search(rf"<{kind}-[0-9a-f]{{10}}>", masked)


@pytest.mark.parametrize(
    "text",
    [
        "2015-10-18 18:06:18,045 INFO took 65020ms",
        "20171223-22:15:29:606|REPORT : 7048 5032 150968 240",
        "setTodayTotalDetailSteps=1514038440000##7007##548365##8661##12361##27173954",
        "application_1445144423722_0020 attempt_1445144423722_0020_m_000000_0",
        "order 13812345678 shipped, 订单号13812345678, size=15012345678",
        "order id: 4111111111111111",
        "v1.2.3.4 and version 1.2.3.4 and 1.2.3.4.5 and Chrome/120.0.0.0",
        "999.1.1.1 127.0.0.1 0.0.0.0 255.255.255.0",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "550e8400-e29b-41d4-a716-446655440000 12345678-1234-1234-1234-123456789012",
        "110105194912310021 has a wrong check digit",
        "std::vector a::b 12:30:45 00:1b:44:11:3a:b7 ::1",
        "getty@tty1.service icon@2x.png git@github.com:a/b Foo@7317849d",
        "password: must contain 8 characters; token: null; tokens: 523; max_token=1024",
        "password=getpass() api_key=os.environ['KEY'] secret=${SECRET} token=<token>",
        "Forgot password: click here",
        "arn:aws:secretsmanager:us-east-1:1:secret:retrieve-secret-8-2aONLk",
        "task-abcdefghijklmnop123 the key features: abc12345",
        "error code: 500123 exit code 137 status code 503 pin 17 on gpio, the mapping failed",
        "验证码错误3次，验证码接口超时5000ms，验证码 1000 次/分钟",
        "密码错误，密码必须8位以上，密码接口返回500，忘记密码请点这里",
        "my password is expired, the password is wrong, password reset link sent, password sha256",
        "cookie expired, invalid cookie: missing, 5 cookies=3",
        "basic authentication failed, bearer of bad news, authorization: denied",
        "微信支付失败，qq登录异常，wechat login failed 3 times",
        "lib-1.2.3.4.jar nginx-1.25.3.1 hadoop-2.6.0-localbox Chrome/120.0.6099.71",
        "/share/hadoop/yarn/hadoop-yarn-common-2.6.0-SNAPSHOT.jar!/webapps/mapreduce",
        "blk_1073743512_2731 BP-1347369012 container_1445144423722_0020_01_000012",
        "commit 9f86d081 sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f0",
        "amount 6222.02 元, 1,299.00 USD, 2026-03-14T10:00:00.123+08:00, 1710410400, 1710410400123",
        "the template is late, 京东A12345 is a shop, 京A is a prefix, plate tectonics 12345",
        "护照办理窗口排队, passport control took 45 minutes, ID card reader 3 is offline",
        "SMS template not approved trace=9b52f2e3f0791bd5, template no 12345 void id not 1234567",
        "WARN100 DE4 GB82 is a block, IBAN missing, AB12 CD34 EF56 GH78",
        "GET /verify/email 200, /reset-password 404, ?code=invalid&state=1, ?key=user",
        "token count 512/1024, secret santa, key: value, signature: invalid, sign in to continue",
        "user_1234567890 uid 20260314 phone model iPhone14Pro, mobile app 13.2.1",
    ],
)
def test_what_is_not_private_stays(text: str) -> None:
    assert MASKER.mask(text) == (text, {})


def test_the_same_value_has_the_same_alias_however_it_is_written() -> None:
    phones = "13812345678 / 138-1234-5678 / +86 138 1234 5678 / 86-13812345678"
    assert len(set(ALIAS.findall(MASKER.mask(phones)[0]))) == 1
    assert len(set(MASKER.mask(phones)[0].split(" / "))) == 1
    assert MASKER.mask("A@Example.com")[0] == Masker(KEY).mask("a@example.COM")[0]
    assert MASKER.mask("a@example.com")[0] != Masker(b"x" * 32).mask("a@example.com")[0]


def test_kinds_are_settable_and_own_patterns_are_added() -> None:
    text = "u-1207 at a@example.com from 10.1.2.3"
    assert Masker(KEY, kinds=["ip"]).mask(text)[1] == {"ip": 1}
    masked, counts = Masker(KEY, kinds=[], own={"member": r"u-\d+"}).mask(text)
    assert counts == {"member": 1}
    assert masked.startswith("<member-")
    assert Masker(KEY, enabled=False).mask(text) == (text, {})
    assert Masker(KEY, enabled=False).mask_named("password", "hunter2") == ("hunter2", {})


@pytest.mark.parametrize(
    ("kinds", "own"),
    [(["mail"], {}), ([], {"Member Id": "x"}), ([], {"member": "("})],
)
def test_wrong_settings_say_so(kinds: list[str], own: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"mask|named|expression"):
        Masker(KEY, kinds=kinds, own=own)


def test_letters_that_were_written_as_codes_are_read() -> None:
    assert MASKER.mask("\\u5bc6\\u7801\\uff1aabc12345")[0].startswith("密码：<secret-")
    assert MASKER.mask("q=%E5%AF%86%E7%A0%81%3Dabc12345&x=1")[0].startswith("q=密码%3D")
    assert "abc12345" not in MASKER.mask("q=%E5%AF%86%E7%A0%81%3Dabc12345&x=1")[0]
    assert MASKER.mask("100%E5 \\ud83d \\u0041")[0] == "100%E5 \\ud83d \\u0041"


_PIECES = st.sampled_from(
    [
        *(
            "a@b.cc",
            "13812345678",
            "138-1234-5678",
            "10.1.2.3",
            "::",
            "2001:db8::1",
            "password=",
            "x",
        ),
        *(
            " ",
            "\n",
            ":",
            "=",
            '"',
            "<",
            ">",
            "-",
            "<email-0123456789>",
            "<ip-9",
            "密码是",
            "4111 1111 ",
        ),
        *(
            "1111 1111",
            "token: ",
            "secret='",
            "'",
            "Bearer ",
            "abc123def456",
            "tel ",
            "1234567",
            "(977) ",
        ),
        *(
            "625-2661",
            "cookie: ",
            "://u:",
            "@",
            "-----BEGIN PRIVATE KEY-----",
            "AKIAIOSFODNN7EXAMPLE",
        ),
    ]
)


@settings(max_examples=100)
@given(st.one_of(st.text(max_size=80), st.lists(_PIECES, max_size=12).map("".join)))
def test_masking_a_masked_text_changes_nothing(text: str) -> None:
    masker = Masker(KEY, own={"own": r"x\d?"})
    masked, _ = masker.mask(text)
    assert masker.mask(masked) == (masked, {})


@pytest.mark.parametrize(
    "piece",
    [
        *("1", "a@", "password=", "<x-", "a.", "::1 ", "-eyJaaaaaaaa", "1 ", "password=&", "密码 "),
        *(
            "my password is ",
            "cookie: a=b;",
            "%3D",
            "\\u5bc6",
            "DE89 3704 ",
            "验证码",
            "sk-a",
            "/verify/",
        ),
        *(
            "basic ",
            "authorization:",
            "微信号",
            "-----BEGIN PRIVATE KEY-----",
            "?code=a",
            "curl -u ",
            "(021)12345678",
            "A",
        ),
    ],
)
def test_a_hostile_text_costs_linear_time(piece: str) -> None:
    began = time.process_time()
    MASKER.mask(piece * (100_000 // len(piece)))
    assert time.process_time() - began < 3


def test_the_key_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "answers" / "mask.key"
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        keys = pool.map(load_key, [path] * 8)
    assert len(set(keys)) == 1
    assert len(keys[0]) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["mask.key"]


def test_a_damaged_key_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"short")
    with pytest.raises(ValueError, match="not a key"):
        load_key(tmp_path / "key")


@pytest.mark.parametrize("text", [r"a\u2028b", r"a\u202eb", "a%E2%80%A8b", "a%E2%80%AEb"])
def test_what_no_reader_sees_stays_the_code_it_is(text: str) -> None:
    assert MASKER.mask(text) == (text, {})


def test_many_finds_in_one_text_cost_linear_time() -> None:
    text = " ".join(f"10.0.{n // 250}.{n % 250}" for n in range(20_000))
    began = time.process_time()
    _, found = MASKER.mask(text)
    assert found == {"ip": 20_000}
    assert time.process_time() - began < 3
