"""An array element whose bytes were made earlier and are kept for many responses."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Encoded:
    """The bytes of one struct in one version of one message, as `encode_part` made them.

    A response that repeats the same elements (a cluster's topics) keeps them in this form until
    they change. The encoder takes the bytes as they are, after checking that they were made for
    the struct and version at hand: bytes of another version would corrupt the response silently.
    """

    struct: type
    version: int
    data: bytes

    def bytes_for(self, struct: type, version: int) -> bytes:
        """The bytes, if they are of `struct` in `version`; ValueError if not."""
        if self.struct is not struct or self.version != version:
            raise ValueError(
                f"encoded {self.struct.__name__} v{self.version} "
                f"stands where {struct.__name__} v{version} is needed"
            )
        return self.data
