//! The code of the plain kernel and of the best few plans: source, IR, PTX and machine code.
//!
//! Without the page's script, each is a listing that opens. The script puts any two plans side by side, colours the
//! differences, and links each line to its source line and to its stalls; it reads its data from the listings.

use super::escape::Escaped;
use super::put;
use crate::report::detail::Detail;
use crate::report::number;

/// The section, or nothing where no code is known.
pub(super) fn section(page: &mut String, detail: &Detail) {
    if detail.codes.is_empty() {
        return;
    }
    put(
        page,
        format_args!(
            "<section id=\"code\">\n<h2>The code</h2>\n<p class=\"caption\">Of {} In machine code, the share before a line is how \
             much of the sub-groups’ time is spent waiting there, and what stands behind it, for what. A line of IR or machine \
             code ends with where it comes from (<code>#file:line:column</code>); in PTX, <code>.loc</code> says so for the \
             lines below it.</p>\n<div id=\"pair\"></div>\n",
            match detail.codes.len() {
                1 => "the plain kernel.".to_owned(),
                2 => "the plain kernel and the plan; that of other plans is not kept.".to_owned(),
                count => format!(
                    "the plain kernel and the {} best plans; that of other plans is not kept, <code>headstart emit</code> \
                     prints it.",
                    count - 1
                ),
            }
        ),
    );
    for source in &detail.sources {
        put(
            page,
            format_args!(
                "<details class=\"listing\" data-form=\"source\" data-file=\"{file}\" data-first=\"{}\"><summary>Source: {file}, \
                 lines {0} to {}</summary>\n<pre tabindex=\"0\"><code>",
                source.first,
                source.first as usize + source.lines.len().saturating_sub(1),
                file = Escaped(&source.file),
            ),
        );
        for line in &source.lines {
            put(page, format_args!("{}\n", Escaped(line)));
        }
        page.push_str("</code></pre></details>\n");
    }
    for code in &detail.codes {
        let name = match code.plan.as_str() {
            "none" => "plain kernel",
            plan => plan,
        };
        put(
            page,
            format_args!(
                "<details class=\"code\" data-plan=\"{}\"><summary><span class=\"plan\">{}</span>, {}</summary>\n",
                Escaped(&code.plan),
                Escaped(name),
                number::duration(code.time_ns)
            ),
        );
        for listing in &code.listings {
            let count = listing.text.lines().count();
            let cut = match listing.cut {
                0 => String::new(),
                cut => format!(", {} more are left out", number::grouped(cut as u64)),
            };
            put(
                page,
                format_args!(
                    "<details class=\"listing\" data-form=\"{form}\"><summary>{form}, {} lines{cut}</summary>\n\
                     <pre tabindex=\"0\"><code>{}</code></pre></details>\n",
                    number::grouped(count as u64),
                    Escaped(&listing.text),
                    form = Escaped(&listing.form),
                ),
            );
        }
        page.push_str("</details>\n");
    }
    page.push_str("</section>\n");
}
