import pytest

from rockgate.gateway.security.tls.principals import (
    SUBJECT_CHARS_MAX,
    NoPrincipal,
    PrincipalRules,
    subject_of,
)

SUBJECT = "CN=Kafka-1,OU=Ops,O=Example"


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("", SUBJECT),
        ("DEFAULT", SUBJECT),
        ("RULE:^CN=(.*?),.*$/$1/", "Kafka-1"),
        ("RULE:^CN=(.*?),.*$/$1/L", "kafka-1"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/U", "KAFKA-1@OPS"),
        ("RULE:^UID=(.*)$/$1/, RULE:^.*O=(.*)$/$1/L,DEFAULT", "example"),
        ("RULE:^UID=(.*)$/$1/,DEFAULT", SUBJECT),
    ],
)
def test_the_first_rule_that_matches_gives_the_name(rules: str, name: str) -> None:
    assert PrincipalRules.parse(rules).name_of(SUBJECT) == name


def test_a_name_that_no_rule_matches_is_refused() -> None:
    with pytest.raises(NoPrincipal, match="no rule"):
        PrincipalRules.parse("RULE:^UID=(.*)$/$1/").name_of(SUBJECT)
    with pytest.raises(NoPrincipal, match="too long"):
        PrincipalRules.parse("DEFAULT").name_of("x" * (SUBJECT_CHARS_MAX + 1))


@pytest.mark.parametrize(
    "rules",
    [
        "RULE",
        "RULE:a/b",
        "RULE:a/b/X",
        "RULE:(/b/",
        "RULE:a/$1/",
        "DEFAULT DEFAULT",
        "DEFAULT," * 64 + "DEFAULT",
        f"RULE:{'a' * 513}/b/",
    ],
)
def test_rules_that_cannot_be_read_are_refused(rules: str) -> None:
    with pytest.raises(ValueError, match="principal_rules"):
        PrincipalRules.parse(rules)


def test_a_subject_is_written_as_java_writes_it() -> None:
    certificate = {
        "subject": (
            (("countryName", "DE"),),
            (("organizationName", 'A, "B"'),),
            (("commonName", "x"), ("userId", "y")),
        )
    }
    assert subject_of(certificate) == 'CN=x+UID=y,O=A\\, \\"B\\",C=DE'
    rules = PrincipalRules.parse("RULE:^CN=(.).*$/$1/")
    assert rules.name_of(subject_of(certificate)) == "x"
