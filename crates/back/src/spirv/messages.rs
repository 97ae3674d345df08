//! The messages that a cache hint becomes on Intel's GPUs.

/// Bytes between two calls for a range whose alignment is not known: a cache line of every Intel GPU.
pub(super) const LINE: u32 = 64;

/// The bytes of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// 1 byte.
    Uchar,
    /// 2 bytes.
    Ushort,
    /// 1, 2, 3, 4 or 8 words of 4 bytes.
    Uint(u32),
}

/// One call: the offset from the pointer in bytes, and the fetched data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// Bytes after the pointer.
    pub offset: u32,
    /// The bytes.
    pub element: Element,
}

impl Element {
    /// As the builtin's name spells it.
    pub fn name(self) -> String {
        match self {
            Element::Uchar => "uchar".to_owned(),
            Element::Ushort => "ushort".to_owned(),
            Element::Uint(1) => "uint".to_owned(),
            Element::Uint(count) => format!("uint{count}"),
        }
    }

    /// The builtin that fetches it.
    pub(super) fn builtin(self) -> String {
        format!("__builtin_IB_lsc_prefetch_global_{}", self.name())
    }

    /// Bytes that it fetches.
    pub(crate) fn bytes(self) -> u32 {
        match self {
            Element::Uchar => 1,
            Element::Ushort => 2,
            Element::Uint(count) => 4 * count,
        }
    }
}

/// The calls for `bytes` at a pointer that is a multiple of `align`.
///
/// - `align` of at least 4: words of 4 bytes that cover the range, eight a call while there are eight, then four,
///   and the one, two or three that are left. The last may reach over the end by at most 3 bytes of the same word.
/// - otherwise, one element of 1 or 2 bytes: that element.
/// - otherwise the first byte of the range, each 64th after it, and the last: one in every cache line that it touches,
///   and none beyond its end, where a prefetch to L1 would fault.
pub fn messages(bytes: u32, align: u32) -> Vec<Message> {
    let mut messages = Vec::new();
    if align >= 4 {
        let words = bytes.div_ceil(4);
        let mut word = 0;
        while word < words {
            let count = match words - word {
                8.. => 8,
                4..=7 => 4,
                rest => rest,
            };
            messages.push(Message {
                offset: 4 * word,
                element: Element::Uint(count),
            });
            word += count;
        }
        return messages;
    }
    if bytes == 2 && align == 2 {
        return vec![Message {
            offset: 0,
            element: Element::Ushort,
        }];
    }
    let mut offsets: Vec<u32> = (0..bytes).step_by(LINE as usize).collect();
    if offsets.last().is_none_or(|&last| last + 1 < bytes) {
        offsets.push(bytes.saturating_sub(1));
    }
    let message = |offset| Message {
        offset,
        element: Element::Uchar,
    };
    offsets.into_iter().map(message).collect()
}

/// How many `load.ugm` messages without a destination the calls for a range become in the code of one sub-group.
///
/// A message asks for at most 512 bytes for all its work-items, each of which takes 4 bytes at least: 16 work-items ask
/// for 8 words in one message, 32 in two (IGC 2.40 for pvc and bmg).
pub fn instructions(bytes: u32, align: u32, sub_group: u32) -> u32 {
    const MESSAGE_BYTES: u32 = 512;
    let of_one = |message: &Message| (sub_group * message.element.bytes().max(4)).div_ceil(MESSAGE_BYTES);
    messages(bytes, align).iter().map(of_one).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(bytes: u32, align: u32) -> String {
        let messages = messages(bytes, align);
        let one = |message: &Message| format!("{}@{}", message.element.name(), message.offset);
        messages.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ranges_are_split_every_32_bytes() {
        assert_eq!(spelled(4, 4), "uint@0");
        assert_eq!(spelled(8, 4), "uint2@0");
        assert_eq!(spelled(12, 4), "uint3@0");
        assert_eq!(spelled(16, 16), "uint4@0");
        assert_eq!(spelled(20, 4), "uint4@0 uint@16");
        assert_eq!(spelled(32, 4), "uint8@0");
        assert_eq!(spelled(33, 4), "uint8@0 uint@32");
        assert_eq!(spelled(64, 8), "uint8@0 uint8@32");
    }

    #[test]
    fn small_and_unaligned_ones_stay_inside() {
        assert_eq!(spelled(1, 1), "uchar@0");
        assert_eq!(spelled(2, 2), "ushort@0");
        assert_eq!(spelled(2, 1), "uchar@0 uchar@1");
        assert_eq!(spelled(65, 1), "uchar@0 uchar@64");
        assert_eq!(spelled(130, 2), "uchar@0 uchar@64 uchar@128 uchar@129");
    }
}
