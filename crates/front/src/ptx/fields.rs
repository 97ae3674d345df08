//! The names of parameters and of structures' members in the source, from the module's debug information.
//!
//! ```text
//! .section .debug_info { .b32 550 .b8 2, 0 .b32 .debug_abbrev … }        bytes of DWARF, written as data
//! entry `apply`, parameter 0, byte 24                                    `args.inner.scale`
//! ```
//!
//! PTX has the sections of DWARF as text: their bytes are put together here, with 0 for addresses of the program and offsets for
//! labels in sections, and a library reads them. Without debug information, and where it makes no sense, no name is known; nothing
//! else depends on it.

use std::cell::Cell;
use std::collections::HashMap;

use gimli::{
    Abbreviations, AttributeValue, DebugStr, Dwarf, EndianSlice, LittleEndian, UnitHeader, UnitOffset,
};

use super::Facts;
use super::kinds::type_of;
use super::slots::parameter_name;
use super::slots::{From, Slot, Slots};
use super::tree::Function;
use crate::error::{Error, Result};
use crate::ir::{Races, Type};
use crate::names;
use crate::suggest::{accepted, quoted};

/// Most members of a structure that get a name.
const MOST_MEMBERS: usize = 1 << 12;
/// Most structures and arrays inside each other.
const MOST_NESTED: u32 = 16;
/// Most types that are looked at for an entry.
const MOST_VISITED: u32 = 1 << 15;
/// Most bytes of the sections together.
const MOST_BYTES: usize = 1 << 26;

type Reader<'b> = EndianSlice<'b, LittleEndian>;

/// What the source says of a scalar that an entry is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// Its name, with the path to it.
    pub name: String,
    /// Whether it is a pointer.
    pub is_pointer: bool,
    /// The numbers that it points to, where the IR has their type.
    pub element: Option<Type>,
}

/// Fields by the parameter's number and the byte in it; whole structures have the largest byte.
type Fields = HashMap<(usize, u64), Field>;

/// The name in the source of each slot of an entry, where it is known. Slots that the source declares pointers become some: code
/// that is not optimised moves them through memory, where nothing else tells.
pub(super) fn in_source(text: &str, function: &Function<'_>, slots: &mut Slots<'_>) -> Vec<Option<String>> {
    let known = match text.contains(".debug_info") {
        true => members(text, function.name).unwrap_or_default(),
        false => HashMap::new(),
    };
    let number = |name: &str| function.params.iter().position(|param| param.name == name);
    // A structure of one member is that member: `__half`.
    let alone = |name: &str, slot: &Slot<'_>| {
        let param = &function.params[number(name)?];
        let bytes = param.array? * type_of(param.ty).map_or(1, |ty| u64::from(ty.bytes()));
        let own = parameter_name(function.name, param.name);
        (u64::from(slot.bytes()) == bytes && slot.name != own).then(|| own.to_owned())
    };
    let said = |slot: &Slot<'_>| match &slot.from {
        From::Parameter(name, offset) => known.get(&(number(name)?, *offset)),
        From::Structure(name, _) => known.get(&(number(name)?, u64::MAX)),
        From::Variable(_) | From::Workspace => None,
    };
    let mut names = Vec::with_capacity(slots.all.len());
    for slot in &mut slots.all {
        let field = said(slot);
        names.push(match (field, &slot.from) {
            (Some(field), _) => Some(field.name.clone()),
            (None, From::Parameter(name, _)) => alone(name, slot),
            _ => None,
        });
        if let Some(field) = field.filter(|field| field.is_pointer && slot.bytes() == 8) {
            slot.pointer = slot.pointer.or(Some(("global", 0)));
            slot.element = field.element;
        }
    }
    names
}

/// Gives the slots the names of the entry's parameters, in their order; their old names become those that the source has for them,
/// so that both are understood. A member's name has its offset behind: `args_16`.
///
/// # Errors
/// There are more names than parameters, or one is no name.
pub(super) fn renamed(
    function: &Function<'_>,
    slots: &mut Slots<'_>,
    mut fields: Vec<Option<String>>,
    names: &[String],
) -> Result<Vec<Option<String>>> {
    let count = function.params.len();
    if names.len() > count {
        return Err(Error::usage(format!("there are {} `names`", names.len()))
            .accepted(format!("the {count} parameters of the entry, in their order")));
    }
    for (param, name) in function.params.iter().zip(names) {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(Error::usage(format!("{} is no parameter's name", quoted(name)))
                .accepted("letters, digits and underscores"));
        }
        for (number, field) in fields.iter_mut().enumerate() {
            let slot = &slots.all[number];
            let new = match slot.from {
                From::Parameter(from, _) | From::Structure(from, _) if from == param.name => {
                    let own = parameter_name(function.name, param.name);
                    slot.name.strip_prefix(own).map(|rest| format!("{name}{rest}"))
                }
                _ => None,
            };
            let is_free = |new: &String| slots.all.iter().all(|other| other.name != *new);
            if let Some(new) = new.filter(is_free) {
                let old = std::mem::replace(&mut slots.all[number].name, new);
                // The source's name of a member says more than its offset.
                if !field.as_deref().is_some_and(is_member) {
                    *field = Some(old);
                }
            }
        }
    }
    Ok(fields)
}

/// The names of an entry's parameters in the source, in their order, from a module's debug information; none where it has none.
pub fn parameter_names(text: &str, entry: &str) -> Vec<String> {
    let known = members(text, entry).unwrap_or_default();
    let names = (0..).map_while(|number| known.get(&(number, u64::MAX)));
    names.map(|field| field.name.clone()).collect()
}

/// Whether the source's name is one of a structure's member.
pub fn is_member(name: &str) -> bool {
    name.contains(['.', '['])
}

/// Facts that name parameters as the source does, with the kernel's names.
///
/// # Errors
/// They name a parameter that the entry has under neither name.
pub(super) fn facts_of_slots(
    entry: &str,
    facts: &Facts,
    slots: &Slots<'_>,
    fields: &[Option<String>],
) -> Result<Facts> {
    let mut facts = facts.clone();
    let is_slot = |name: &str| slots.all.iter().any(|slot| slot.name == name);
    for (slot, field) in slots.all.iter().zip(fields) {
        let Some(field) = field.as_ref().filter(|field| !is_slot(field)) else {
            continue;
        };
        if let Some(said) = facts.parameters.remove(field) {
            let own = facts.parameters.entry(slot.name.clone()).or_default();
            own.unit = own.unit.filter(|_| own.length.is_some()).or(said.unit);
            own.length = own.length.or(said.length);
            own.element = own.element.or(said.element);
            own.align = own.align.or(said.align);
            own.read_only |= said.read_only;
            own.unaliased |= said.unaliased;
            if said.races != Races::None {
                own.races = said.races;
            }
        }
    }
    if let Some(name) = facts.parameters.keys().find(|name| !is_slot(name)) {
        let own = slots.all.iter().map(|slot| slot.name.as_str());
        let has_names = !facts.names.is_empty();
        let names = own.zip(fields).map(|(own, field)| {
            let field = field.as_deref().filter(|field| !has_names || is_member(field));
            field.unwrap_or(own)
        });
        return Err(Error::usage(format!(
            "{} has no parameter {}",
            quoted(&names::shown(entry)),
            quoted(name)
        ))
        .accepted(accepted(name, "parameters", names)));
    }
    Ok(facts)
}

/// The names of an entry's parameters and their members, by the parameter's number and the member's offset; whole structures have
/// the largest offset.
fn members(text: &str, entry: &str) -> Option<Fields> {
    let sections = Sections::read(text)?;
    let bytes = |name: &str| sections.bytes.get(name).map_or(&[][..], Vec::as_slice);
    let load = |id: gimli::SectionId| -> gimli::Result<Reader<'_>> {
        Ok(EndianSlice::new(bytes(id.name()), LittleEndian))
    };
    let dwarf = Dwarf::load(load).ok()?;
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        // Modules have no table of lines, without which a whole unit cannot be read.
        let Ok(abbreviations) = dwarf.abbreviations(&header) else {
            continue;
        };
        let types = Types {
            strings: &dwarf.debug_str,
            unit: &header,
            abbreviations: &abbreviations,
            visited: Cell::new(0),
        };
        if let Ok(Some(found)) = of_unit(&types, entry) {
            return Some(found);
        }
    }
    None
}

fn of_unit(reader: &Types<'_, '_>, entry: &str) -> gimli::Result<Option<Fields>> {
    let mut tree = reader.unit.entries_tree(reader.abbreviations, None)?;
    let mut top = tree.root()?.children();
    while let Some(node) = top.next()? {
        let own = node.entry();
        let is_named = [
            gimli::DW_AT_linkage_name,
            gimli::DW_AT_MIPS_linkage_name,
            gimli::DW_AT_name,
        ]
        .into_iter()
        .any(|attribute| reader.text(own.attr_value(attribute)).as_deref() == Some(entry));
        if own.tag() != gimli::DW_TAG_subprogram || !is_named {
            continue;
        }
        let mut found = HashMap::new();
        let (mut number, mut parameters) = (0, node.children());
        while let Some(node) = parameters.next()? {
            let own = node.entry();
            if own.tag() != gimli::DW_TAG_formal_parameter {
                continue;
            }
            if let Some(name) = reader.text(own.attr_value(gimli::DW_AT_name)) {
                let whole = Field {
                    name: name.clone(),
                    is_pointer: false,
                    element: None,
                };
                found.insert((number, u64::MAX), whole);
                let mut leaves = Vec::new();
                if let Some(ty) = reader.reference(own.attr_value(gimli::DW_AT_type)) {
                    reader.leaves(ty, 0, &name, 0, &mut leaves)?;
                }
                for (offset, field) in leaves {
                    // Members of a union share their bytes: the first names them.
                    found.entry((number, offset)).or_insert(field);
                }
            }
            number += 1;
        }
        return Ok((number > 0).then_some(found));
    }
    Ok(None)
}

/// The types of a unit.
struct Types<'u, 'b> {
    strings: &'u DebugStr<Reader<'b>>,
    unit: &'u UnitHeader<Reader<'b>>,
    abbreviations: &'u Abbreviations,
    /// How many types were looked at: broken ones may lead to themselves.
    visited: Cell<u32>,
}

impl<'b> Types<'_, 'b> {
    fn text(&self, value: Option<AttributeValue<Reader<'b>>>) -> Option<String> {
        let text = match value? {
            AttributeValue::String(text) => text,
            AttributeValue::DebugStrRef(offset) => self.strings.get_str(offset).ok()?,
            _ => return None,
        };
        let text = text.to_string().ok()?;
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn reference(&self, value: Option<AttributeValue<Reader<'b>>>) -> Option<UnitOffset> {
        match value? {
            AttributeValue::UnitRef(offset) => Some(offset),
            AttributeValue::DebugInfoRef(offset) => offset.to_unit_offset(self.unit),
            _ => None,
        }
    }

    /// Adds the scalars that a type is made of: where each starts, and its name.
    fn leaves(
        &self,
        ty: UnitOffset,
        at: u64,
        name: &str,
        nested: u32,
        into: &mut Vec<(u64, Field)>,
    ) -> gimli::Result<()> {
        self.visited.set(self.visited.get() + 1);
        let too_many = into.len() >= MOST_MEMBERS || self.visited.get() > MOST_VISITED;
        if nested > MOST_NESTED || too_many {
            return Ok(());
        }
        let mut tree = self.unit.entries_tree(self.abbreviations, Some(ty))?;
        let node = tree.root()?;
        let own = node.entry();
        let inner = self.reference(own.attr_value(gimli::DW_AT_type));
        match own.tag() {
            gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type => match inner {
                Some(inner) => self.leaves(inner, at, name, nested + 1, into),
                None => Ok(()),
            },
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                let mut members = node.children();
                while let Some(member) = members.next()? {
                    let member = member.entry();
                    let is_base = member.tag() == gimli::DW_TAG_inheritance;
                    let is_static = member.attr_value(gimli::DW_AT_external).is_some();
                    if !is_base && member.tag() != gimli::DW_TAG_member || is_static {
                        continue;
                    }
                    let Some(inner) = self.reference(member.attr_value(gimli::DW_AT_type)) else {
                        continue;
                    };
                    let at = at.wrapping_add(location(member.attr_value(gimli::DW_AT_data_member_location)));
                    let own = self.text(member.attr_value(gimli::DW_AT_name));
                    // nvcc makes a base a member of this name.
                    let is_base = is_base || own.as_deref().is_some_and(|own| own.starts_with("__b_"));
                    // Members of a base, and of an unnamed union, are the structure's own.
                    let name = match own.filter(|_| !is_base) {
                        Some(own) => format!("{name}.{own}"),
                        None => name.to_owned(),
                    };
                    self.leaves(inner, at, &name, nested + 1, into)?;
                }
                Ok(())
            }
            gimli::DW_TAG_array_type => {
                let (Some(inner), Some(size)) = (inner, inner.and_then(|inner| self.size(inner, 0))) else {
                    return Ok(());
                };
                let mut extents = Vec::new();
                let mut children = node.children();
                while let Some(child) = children.next()? {
                    let child = child.entry();
                    if child.tag() == gimli::DW_TAG_subrange_type {
                        extents.push(extent(
                            child.attr_value(gimli::DW_AT_count),
                            child.attr_value(gimli::DW_AT_upper_bound),
                        ));
                    }
                }
                let count = extents
                    .iter()
                    .fold(1u64, |count, &extent| count.saturating_mul(extent));
                for number in 0..count.min(MOST_MEMBERS as u64) {
                    let (mut rest, mut index) = (number, String::new());
                    for &extent in extents.iter().rev() {
                        index = format!("[{}]{index}", rest % extent.max(1));
                        rest /= extent.max(1);
                    }
                    let at = at.wrapping_add(number.wrapping_mul(size));
                    self.leaves(inner, at, &format!("{name}{index}"), nested + 1, into)?;
                    if into.len() >= MOST_MEMBERS {
                        break;
                    }
                }
                Ok(())
            }
            tag => {
                let is_pointer = matches!(
                    tag,
                    gimli::DW_TAG_pointer_type
                        | gimli::DW_TAG_reference_type
                        | gimli::DW_TAG_rvalue_reference_type
                );
                let field = Field {
                    name: name.to_owned(),
                    is_pointer,
                    element: inner
                        .filter(|_| is_pointer)
                        .and_then(|inner| self.number(inner, 0)),
                };
                into.push((at, field));
                Ok(())
            }
        }
    }

    /// The IR's type of a number.
    fn number(&self, ty: UnitOffset, nested: u32) -> Option<Type> {
        let own = self.unit.entry(self.abbreviations, ty).ok()?;
        if own.tag() != gimli::DW_TAG_base_type {
            let inner = self
                .reference(own.attr_value(gimli::DW_AT_type))
                .filter(|_| nested < MOST_NESTED)?;
            let is_named = matches!(
                own.tag(),
                gimli::DW_TAG_typedef
                    | gimli::DW_TAG_const_type
                    | gimli::DW_TAG_volatile_type
                    | gimli::DW_TAG_restrict_type
            );
            return is_named.then(|| self.number(inner, nested + 1)).flatten();
        }
        let AttributeValue::Encoding(encoding) = own.attr_value(gimli::DW_AT_encoding)? else {
            return None;
        };
        let bytes = own.attr_value(gimli::DW_AT_byte_size)?.udata_value()?;
        Some(match (encoding == gimli::DW_ATE_float, bytes) {
            (true, 4) => Type::F32,
            (true, 8) => Type::F64,
            (false, 1) => Type::I8,
            (false, 2) => Type::I16,
            (false, 4) => Type::I32,
            (false, 8) => Type::I64,
            _ => return None,
        })
    }

    /// Bytes of a type.
    fn size(&self, ty: UnitOffset, nested: u32) -> Option<u64> {
        let own = self.unit.entry(self.abbreviations, ty).ok()?;
        if let Some(size) = own
            .attr_value(gimli::DW_AT_byte_size)
            .and_then(|size| size.udata_value())
        {
            return Some(size);
        }
        match own.tag() {
            gimli::DW_TAG_pointer_type | gimli::DW_TAG_reference_type => Some(8),
            _ if nested < MOST_NESTED => {
                self.size(self.reference(own.attr_value(gimli::DW_AT_type))?, nested + 1)
            }
            _ => None,
        }
    }
}

/// Where a member starts in its structure: a number, or an expression that adds one.
fn location(value: Option<AttributeValue<Reader<'_>>>) -> u64 {
    match value {
        Some(AttributeValue::Exprloc(expression)) => added(expression.0.slice()),
        Some(AttributeValue::Block(bytes)) => added(bytes.slice()),
        Some(value) => value.udata_value().unwrap_or(0),
        None => 0,
    }
}

/// The number that `DW_OP_plus_uconst` adds.
fn added(expression: &[u8]) -> u64 {
    let Some((&operation, bytes)) = expression.split_first() else {
        return 0;
    };
    if operation != gimli::DW_OP_plus_uconst.0 {
        return 0;
    }
    let parts = bytes.iter().enumerate().take(9);
    let mut number = 0;
    for (position, byte) in parts {
        number |= u64::from(byte & 0x7f) << (7 * position);
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}

/// Elements of an array in one dimension.
fn extent(count: Option<AttributeValue<Reader<'_>>>, last: Option<AttributeValue<Reader<'_>>>) -> u64 {
    let number = |value: Option<AttributeValue<Reader<'_>>>| value.and_then(|value| value.udata_value());
    number(count)
        .or(number(last).map(|last| last.saturating_add(1)))
        .unwrap_or(0)
}

/// The sections of debug information, as bytes.
struct Sections {
    bytes: HashMap<String, Vec<u8>>,
}

impl Sections {
    /// Puts together the sections of a module.
    fn read(text: &str) -> Option<Sections> {
        let mut lines = Vec::new();
        let mut section: Option<&str> = None;
        for line in text.lines() {
            let line = line.split("//").next().unwrap_or_default().trim();
            if let Some(rest) = line.strip_prefix(".section") {
                section = rest.split_whitespace().next();
                // The brace may stand in the same line, and data behind it.
                if let Some((_, behind)) = rest.split_once('{') {
                    lines.push((section?, behind.trim()));
                }
            } else if let Some(name) = section {
                match line {
                    "}" => section = None,
                    line => lines.push((name, line.trim_start_matches('{').trim())),
                }
            }
        }
        // Labels first: they are named before they are defined.
        let mut labels: HashMap<&str, u64> = HashMap::new();
        let mut sizes: HashMap<&str, u64> = HashMap::new();
        for &(name, line) in &lines {
            let size = sizes.entry(name).or_default();
            match line.strip_suffix(':') {
                Some(label) => {
                    labels.insert(label.trim(), *size);
                }
                None => {
                    if let Some((width, values)) = data(line) {
                        *size += width as u64 * values.split(',').count() as u64;
                    }
                }
            }
        }
        let mut bytes: HashMap<String, Vec<u8>> = HashMap::new();
        let mut all = 0;
        for (name, line) in lines {
            let Some((width, values)) = data(line) else {
                continue;
            };
            let into = bytes.entry(name.to_owned()).or_default();
            for value in values.split(',') {
                let number = value_of(value.trim(), &labels);
                into.extend_from_slice(&number.to_le_bytes()[..width]);
                all += width;
            }
            if all > MOST_BYTES {
                return None;
            }
        }
        bytes.contains_key(".debug_info").then_some(Sections { bytes })
    }
}

/// The width and the values of a line of data.
fn data(line: &str) -> Option<(usize, &str)> {
    let (directive, values) = line.split_once(char::is_whitespace)?;
    let width = match directive {
        ".b8" => 1,
        ".b16" => 2,
        ".b32" => 4,
        ".b64" => 8,
        _ => return None,
    };
    Some((width, values))
}

/// A number, or the offset of a label; sections start at 0, and so does all that is no part of them.
fn value_of(text: &str, labels: &HashMap<&str, u64>) -> u64 {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text
            .parse::<u64>()
            .ok()
            .or_else(|| text.parse::<i64>().ok().map(|number| number as u64)),
    };
    if let Some(number) = number(text) {
        return number;
    }
    let (base, more) = match text.split_once('+') {
        Some((base, more)) => (base.trim(), number(more.trim()).unwrap_or(0)),
        None => (text, 0),
    };
    labels.get(base).copied().unwrap_or(0).wrapping_add(more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_become_bytes() {
        let text = ".section .debug_str\n{\n$L__info_string0:\n.b8 97, 0\n$L__info_string1:\n.b8 98,0 // b\n}\n\
                    .section .debug_info {\n.b32 12\n.b16 0x102\n.b32 $L__info_string1+1\n.b64 somewhere\n.b8 -1\n}\n";
        let sections = Sections::read(text).expect("sections");
        assert_eq!(sections.bytes[".debug_str"], [97, 0, 98, 0]);
        let expected = [12, 0, 0, 0, 2, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255];
        assert_eq!(sections.bytes[".debug_info"], expected);
    }

    #[test]
    fn what_is_no_debug_information_names_nothing() {
        for text in [
            ".section .debug_info\n{\n.b32 4294967295\n.b8 2, 0\n}\n",
            ".section .debug_info\n{\n.b32 7\n.b8 9,9\n.b32 .debug_abbrev\n.b8 8\n}\n.section .debug_abbrev\n{\n.b8 1,17,1\n}\n",
            ".section .debug_info\n{\n}\n",
        ] {
            assert_eq!(members(text, "k"), None, "{text}");
        }
    }
}
