//! What launches must meet so that a better kernel may run in their place.
//!
//! `exec.txt` says which kernels: lines of words, tabs between. A kernel's own line, and its facts after it:
//!
//! ```text
//! kernel     IMAGE  NAME  FILE  ENTRY       FILE has ENTRY, which computes what NAME of IMAGE does
//! assembled  FILE                           the same as machine code, for a driver that takes it
//! takes      NANOSECONDS                    what launches of NAME usually take
//! group      X  Y  Z                        for work-groups of this size
//! shared     BYTES                          for this much dynamic shared memory
//! resident                                  as many work-groups of ENTRY are resident as of NAME, or more
//! apart      INDEX  INSIDE  INDEX  INSIDE   through two pointers, this many bytes inside parameters, different bytes are reached
//!                                           (`extents` says which)
//! terms      TERM  …                        arithmetic on a launch's numbers
//! reach      INDEX  INSIDE  NUMBER          which bytes the kernel reaches through a pointer: what that term says
//! ends       INDEX  INSIDE  LENGTH  SIZE    the pointer is an allocation's start, and that has this many elements
//! aligned    INDEX  INSIDE  BYTES           the pointer is a multiple of it
//! known      INDEX  INSIDE                  the pointer leads into an allocation, and so into no variable of a module
//! machine    DRIVER  CAPABILITY             for machine code as this driver makes it for devices of this compute capability
//! address    KEPT  NAME                     variable KEPT of the better kernel's module holds the address of the program's NAME
//! ```

use crate::abi::DevicePtr;
use crate::addresses::KeptAddress;
use crate::reach::{Reaches, Scalar};

/// Facts of a kernel at most.
const MOST_FACTS: usize = 96;
/// Words of a launch's parameters that they are about at most: these are kept for the next launch.
pub const MOST_WORDS: usize = 32;

/// A pointer among the parameters, this many bytes inside one; or a number of fewer bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub index: usize,
    pub inside: usize,
    pub bytes: usize,
}

/// What a launch must meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    Group([u32; 3]),
    Shared(u32),
    /// Work-groups wait for each other: all that the launch waits for must be resident.
    Resident,
    Apart(Place, Place),
    Ends(Place, u64, u64),
    Aligned(Place, u64),
    Known(Place),
}

/// A kernel that has a better one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Better {
    pub image: String,
    pub name: String,
    pub file: String,
    pub assembled: Option<String>,
    /// The time that launches of the original usually take, in nanoseconds; 0 if it is not known.
    pub usual_ns: u64,
    pub entry: String,
    pub facts: Vec<Fact>,
    /// What [`Fact::Apart`] may need.
    pub reaches: Reaches,
    pub addresses: Vec<KeptAddress>,
    /// The driver's version and the devices' compute capability for which it computes the same.
    pub machine: Option<(u64, u64)>,
}

/// A kernel that keeps its original.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub name: String,
    pub why: String,
}

/// The kernels that a text says.
pub fn read(text: &str) -> Vec<Result<Better, LeftOut>> {
    let mut all: Vec<Result<Better, LeftOut>> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split('\t').collect();
        if let ["kernel", image, name, file, entry] = words[..] {
            all.push(Ok(Better {
                image: image.to_owned(),
                name: name.to_owned(),
                file: file.to_owned(),
                assembled: None,
                usual_ns: 0,
                entry: entry.to_owned(),
                facts: Vec::new(),
                reaches: Reaches::default(),
                addresses: Vec::new(),
                machine: None,
            }));
            continue;
        }
        let Some(Ok(better)) = all.last_mut() else {
            continue;
        };
        if let Err(why) = add(better, &words) {
            let name = better.name.clone();
            all.pop();
            all.push(Err(LeftOut { name, why }));
        }
    }
    all.into_iter().map(|read| read.and_then(within_limits)).collect()
}

/// Adds what a line says of a kernel.
///
/// # Errors
/// It is not understood: it might be what the kernel rests on.
fn add(better: &mut Better, words: &[&str]) -> Result<(), String> {
    let not_understood = || format!("`{}` is not understood", words.join(" "));
    match words {
        ["address", kept_in, of] => better.addresses.push(KeptAddress {
            kept_in: (*kept_in).to_owned(),
            of: (*of).to_owned(),
        }),
        ["assembled", file] => better.assembled = Some((*file).to_owned()),
        ["takes", ns] => better.usual_ns = ns.parse().map_err(|_| not_understood())?,
        ["machine", driver, capability] => match (driver.parse(), capability.parse()) {
            (Ok(driver), Ok(capability)) => better.machine = Some((driver, capability)),
            _ => return Err(not_understood()),
        },
        _ if is_of_reaches(words) => {
            if !add_reaches(words, &mut better.reaches) {
                return Err(not_understood());
            }
        }
        _ => better.facts.push(fact(words).ok_or_else(not_understood)?),
    }
    Ok(())
}

fn within_limits(better: Better) -> Result<Better, LeftOut> {
    let words = places(&better.facts, &better.reaches).len();
    let facts = better.facts.len();
    let why = if facts > MOST_FACTS {
        format!("it rests on {facts} facts, and {MOST_FACTS} are checked at most")
    } else if words > MOST_WORDS {
        format!("its facts are about {words} words of the parameters, and {MOST_WORDS} are looked at at most")
    } else {
        return Ok(better);
    };
    Err(LeftOut {
        name: better.name,
        why,
    })
}

/// The arithmetic among facts, words in a line separated by spaces or tabs; none if it is not understood.
pub fn reaches_of(text: &str) -> Option<Reaches> {
    let mut own = Reaches::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split([' ', '\t']).collect();
        if is_of_reaches(&words) && !add_reaches(&words, &mut own) {
            return None;
        }
    }
    Some(own)
}

fn is_of_reaches(words: &[&str]) -> bool {
    matches!(words.first(), Some(&"terms" | &"reach"))
}

/// Adds a line about what is reached; false if it is not understood.
fn add_reaches(words: &[&str], reaches: &mut Reaches) -> bool {
    match words {
        ["terms", terms @ ..] => {
            let read = Reaches::read(terms);
            read.map(|read| *reaches = read).is_some()
        }
        ["reach", index, inside, term] => {
            let number = |word: &str| word.parse::<usize>().ok();
            match (number(index), number(inside), number(term)) {
                (Some(index), Some(inside), Some(term)) => reaches.add(index, inside, term),
                _ => false,
            }
        }
        _ => false,
    }
}

fn fact(words: &[&str]) -> Option<Fact> {
    let (kind, rest) = words.split_first()?;
    let place = |index: u64, inside: u64| Place {
        index: index as usize,
        inside: inside as usize,
        bytes: size_of::<DevicePtr>(),
    };
    let numbers: Vec<u64> = rest.iter().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    Some(match (*kind, &numbers[..]) {
        ("group", &[x, y, z]) => Fact::Group([x as u32, y as u32, z as u32]),
        ("shared", &[bytes]) => Fact::Shared(bytes as u32),
        ("resident", &[]) => Fact::Resident,
        ("apart", &[index, inside, other, other_inside]) => {
            Fact::Apart(place(index, inside), place(other, other_inside))
        }
        ("ends", &[index, inside, length, size]) if size > 0 => {
            Fact::Ends(place(index, inside), length, size)
        }
        ("aligned", &[index, inside, bytes]) if bytes > 0 => Fact::Aligned(place(index, inside), bytes),
        ("known", &[index, inside]) => Fact::Known(place(index, inside)),
        _ => return None,
    })
}

/// The places that facts look at, each once.
pub fn places(facts: &[Fact], reaches: &Reaches) -> Vec<Place> {
    let mut all = Vec::new();
    let mut add = |place: Place| {
        if !all.contains(&place) {
            all.push(place);
        }
    };
    for fact in facts {
        match *fact {
            Fact::Group(_) | Fact::Shared(_) | Fact::Resident => {}
            Fact::Apart(one, other) => {
                add(one);
                add(other);
            }
            Fact::Ends(place, ..) | Fact::Aligned(place, _) | Fact::Known(place) => add(place),
        }
    }
    reaches.scalars().map(Place::of).for_each(add);
    all
}

impl Place {
    /// Where a number is.
    pub fn of(scalar: Scalar) -> Place {
        Place {
            index: scalar.index,
            inside: scalar.inside,
            bytes: scalar.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_with_a_line_that_is_not_understood_is_left_out() {
        let text = "kernel\tab\tone\tone.ptx\tone\ngroup\t128\t1\t1\napart\t0\t0\t1\t8\n\
                    kernel\tab\ttwo\ttwo.ptx\ttwo\nmoon\tfull\nshared\t0\nkernel\tcd\tthree\tthree.cubin\tthree\nmachine\t13000\t90\nends\t2\t0\t1024\t4\naddress\tkept\ttable\nknown\t1\t16\n";
        let (all, left_out): (Vec<_>, Vec<_>) = read(text).into_iter().partition(Result::is_ok);
        let all: Vec<Better> = all.into_iter().flatten().collect();
        let names: Vec<&str> = all.iter().map(|better| better.name.as_str()).collect();
        assert_eq!(names, ["one", "three"]);
        let two = LeftOut {
            name: "two".to_owned(),
            why: "`moon full` is not understood".to_owned(),
        };
        assert_eq!(left_out, [Err(two)]);
        assert_eq!((all[0].machine, all[1].machine), (None, Some((13000, 90))));
        let place = |index, inside| Place {
            index,
            inside,
            bytes: 8,
        };
        assert_eq!(
            all[0].facts,
            [Fact::Group([128, 1, 1]), Fact::Apart(place(0, 0), place(1, 8))]
        );
        assert_eq!(
            all[1].facts,
            [Fact::Ends(place(2, 0), 1024, 4), Fact::Known(place(1, 16))]
        );
        assert_eq!(all[1].addresses.len(), 1);
        assert_eq!(all[1].addresses[0].of, "table");
        assert_eq!(places(&all[0].facts, &all[0].reaches), [place(0, 0), place(1, 8)]);
        let of = |lines: &str| {
            read(&format!("kernel\tab\tone\tone.ptx\tone\n{lines}"))
                .pop()
                .expect("a kernel")
        };
        assert_eq!(
            of("resident\n").expect("it is understood").facts,
            [Fact::Resident]
        );
        assert!(of("resident\t2\n").is_err());
        assert_eq!(of("takes\t1500\n").expect("it is understood").usual_ns, 1500);
        let known =
            |count: usize| -> String { (0..count).map(|index| format!("known\t{index}\t0\n")).collect() };
        assert!(of(&known(MOST_WORDS)).is_ok());
        let why = of(&known(MOST_WORDS + 1)).expect_err("too many").why;
        assert!(why.contains("33 words of the parameters, and 32"), "{why}");
        let group = "group\t1\t1\t1\n";
        assert!(of(&group.repeat(MOST_FACTS)).is_ok());
        let why = of(&group.repeat(MOST_FACTS + 1)).expect_err("too many").why;
        assert!(why.contains("97 facts, and 96"), "{why}");
    }
}
