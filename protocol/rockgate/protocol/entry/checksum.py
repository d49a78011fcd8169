"""CRC-32, with the fastest implementation available.

isal computes the same function as zlib in a tenth of the time or less, which halves the time of an
append of 16 KB. The SDK does not need it.
"""

try:
    from isal.isal_zlib import crc32
except ImportError:
    from zlib import crc32

__all__ = ["crc32"]
