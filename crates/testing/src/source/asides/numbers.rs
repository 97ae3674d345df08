//! Unusual numbers: unions, conversions, arithmetic on floats, integer intrinsics.

use super::{LENGTH, Weaver};

impl Weaver<'_> {
    pub(super) fn punned(&mut self, counters: &[String]) -> String {
        self.features.insert("union");
        let (i, j) = (self.index(counters), self.index(counters));
        match self.random.below(3) {
            0 => format!(
                "Word w; w.u = xc[({i}) & 63u]; w.h[({j}) & 1u] += 3; w.b[({i}) & 3u] -= 1; e0 = e0 * 31u + w.u;"
            ),
            1 => format!(
                "Wide w; w.u = xs[({i}) & 63u]; e1 = e1 * 31u + bits(w.f[({j}) & 1u]) + bits(w.d) + (ull)w.h[({i}) & 3u];"
            ),
            _ => format!(
                "Wide w; w.w[0] = e0; w.w[1] = xc[({i}) & 63u]; w.h[({j}) & 3u] = (short)t; e1 = e1 * 31u + w.u;"
            ),
        }
    }

    /// A number of some type out of the unusual ones.
    fn unusual(&mut self, ty: &str, counters: &[String]) -> String {
        let i = self.index(counters);
        let parts = match ty {
            "float" | "int" | "unsigned" => 2,
            "short" | "unsigned short" => 4,
            "signed char" | "unsigned char" => 8,
            _ => 1,
        };
        format!("((const {ty}*)xs)[({i}) & {}u]", LENGTH * parts - 1)
    }

    pub(super) fn converted(&mut self, counters: &[String]) -> String {
        self.features.insert("conversion");
        let (ty, way) = match self.random.below(10) {
            0..4 => ("float", self.one(FROM_FLOAT)),
            4..7 => ("double", self.one(FROM_DOUBLE)),
            7 => {
                let i = self.index(counters);
                let way = self.one(FROM_FLOAT).replace('X', "x0");
                return format!(
                    "float x0 = of_half(((const unsigned short*)xs)[({i}) & 255u]); e1 = e1 * 31u + (ull)({way});"
                );
            }
            _ => {
                let ty = self.one(&[
                    "signed char",
                    "unsigned char",
                    "short",
                    "unsigned short",
                    "int",
                    "unsigned",
                    "long long",
                    "ull",
                ]);
                let way = match ty {
                    "int" => self.one(FROM_INT),
                    "unsigned" => self.one(FROM_UNSIGNED),
                    "long long" => self.one(FROM_LONG),
                    "ull" => self.one(FROM_UNSIGNED_LONG),
                    _ => self.one(&["bits((float)X)", "bits((double)X)", "to_half((int)X)"]),
                };
                (ty, way)
            }
        };
        let number = self.unusual(ty, counters);
        format!(
            "{ty} x0 = {number}; e1 = e1 * 31u + (ull)({});",
            way.replace('X', "x0")
        )
    }

    pub(super) fn floats(&mut self, counters: &[String]) -> String {
        self.features.insert("arithmetic on unusual floats");
        let (ty, way) = match self.random.chance(60) {
            true => ("float", self.one(FLOATS)),
            false => ("double", self.one(DOUBLES)),
        };
        let (x, y) = (self.unusual(ty, counters), self.unusual(ty, counters));
        let way = way.replace('X', "x0").replace('Y', "y0");
        // With contraction such sums are left to the assembler, and an entry that has one gets no plan.
        let sums = match self.random.chance(25) {
            true => " e2 = e2 * 0.5f + x[e0 & 63u]; e3 = e3 * 0.25 + e2;",
            false => "",
        };
        format!("{ty} x0 = {x}, y0 = {y}; e1 = e1 * 31u + (ull)({way});{sums}")
    }

    pub(super) fn whole_numbers(&mut self, counters: &[String]) -> String {
        self.features.insert("integer intrinsic");
        let (x, y) = match self.random.chance(50) {
            true => (
                self.unusual("unsigned", counters),
                self.unusual("unsigned", counters),
            ),
            false => ("xc[e0 & 63u]".to_owned(), self.index(counters)),
        };
        let way = self.one(INTEGERS).replace('X', "x0").replace('Y', "y0");
        format!("unsigned x0 = {x}, y0 = {y}; e1 = e1 * 31u + (ull)({way});")
    }
}

const FROM_FLOAT: &[&str] = &[
    "(signed char)X",
    "(unsigned char)X",
    "(short)X",
    "(unsigned short)X",
    "(int)X",
    "(unsigned)X",
    "(long long)X",
    "(ull)X",
    "__float2int_rn(X)",
    "__float2int_ru(X)",
    "__float2int_rd(X)",
    "__float2uint_rn(X)",
    "__float2uint_ru(X)",
    "__float2uint_rd(X)",
    "__float2ll_rn(X)",
    "__float2ll_ru(X)",
    "__float2ll_rd(X)",
    "__float2ull_rn(X)",
    "__float2ull_ru(X)",
    "__float2ull_rd(X)",
    "bits((double)X)",
    "to_half(X)",
    "bits(rintf(X))",
    "bits(truncf(X))",
    "bits(floorf(X))",
    "bits(ceilf(X))",
    "bits(roundf(X))",
    "bits(__saturatef(X))",
];

const FROM_DOUBLE: &[&str] = &[
    "(signed char)X",
    "(unsigned char)X",
    "(short)X",
    "(unsigned short)X",
    "(int)X",
    "(unsigned)X",
    "(long long)X",
    "(ull)X",
    "__double2int_rn(X)",
    "__double2int_ru(X)",
    "__double2int_rd(X)",
    "__double2uint_rn(X)",
    "__double2uint_ru(X)",
    "__double2uint_rd(X)",
    "__double2ll_rn(X)",
    "__double2ll_ru(X)",
    "__double2ll_rd(X)",
    "__double2ull_rn(X)",
    "__double2ull_ru(X)",
    "__double2ull_rd(X)",
    "bits(__double2float_rn(X))",
    "bits(__double2float_rz(X))",
    "bits(__double2float_ru(X))",
    "bits(__double2float_rd(X))",
    "to_half(X)",
    "bits(rint(X))",
    "bits(trunc(X))",
    "bits(floor(X))",
    "bits(ceil(X))",
];

const FROM_INT: &[&str] = &[
    "bits(__int2float_rn(X))",
    "bits(__int2float_rz(X))",
    "bits(__int2float_ru(X))",
    "bits(__int2float_rd(X))",
    "bits((double)X)",
    "to_half(X)",
];

const FROM_UNSIGNED: &[&str] = &[
    "bits(__uint2float_rn(X))",
    "bits(__uint2float_rz(X))",
    "bits(__uint2float_ru(X))",
    "bits(__uint2float_rd(X))",
    "bits((double)X)",
];

const FROM_LONG: &[&str] = &[
    "bits(__ll2float_rn(X))",
    "bits(__ll2float_rz(X))",
    "bits(__ll2float_ru(X))",
    "bits(__ll2float_rd(X))",
    "bits(__ll2double_rn(X))",
    "bits(__ll2double_rz(X))",
    "bits(__ll2double_ru(X))",
    "bits(__ll2double_rd(X))",
];

const FROM_UNSIGNED_LONG: &[&str] = &[
    "bits(__ull2float_rn(X))",
    "bits(__ull2float_rz(X))",
    "bits(__ull2float_ru(X))",
    "bits(__ull2float_rd(X))",
    "bits(__ull2double_rn(X))",
    "bits(__ull2double_rz(X))",
    "bits(__ull2double_ru(X))",
    "bits(__ull2double_rd(X))",
];

const FLOATS: &[&str] = &[
    "bits(fminf(X, Y))",
    "bits(fmaxf(X, Y))",
    "bits(fabsf(X))",
    "bits(-X)",
    "bits(copysignf(X, Y))",
    "bits(fmaf(X, Y, 1.0f))",
    "bits(X + Y)",
    "bits(X - Y)",
    "bits(X * Y)",
    "bits(__fadd_rz(X, Y))",
    "bits(__fadd_ru(X, Y))",
    "bits(__fadd_rd(X, Y))",
    "bits(__fmul_rz(X, Y))",
    "bits(__fmul_ru(X, Y))",
    "bits(__fmaf_rd(X, Y, X))",
    "bits(__fsqrt_rn(X))",
    "bits(__fdiv_rn(X, Y))",
    "bits(__frcp_rn(X))",
    "(X < Y) + 2 * (X == Y) + 4 * (X > Y) + 8 * (X != Y) + 16 * !(X <= Y) + 32 * !(X >= Y)",
    "(isnan(X) ? 1 : 0) + (isinf(Y) ? 2 : 0) + (signbit(X) ? 4 : 0)",
];

const DOUBLES: &[&str] = &[
    "bits(fmin(X, Y))",
    "bits(fmax(X, Y))",
    "bits(fabs(X))",
    "bits(-X)",
    "bits(copysign(X, Y))",
    "bits(fma(X, Y, 1.0))",
    "bits(X + Y)",
    "bits(X - Y)",
    "bits(X * Y)",
    "bits(__dadd_rz(X, Y))",
    "bits(__dadd_ru(X, Y))",
    "bits(__dmul_rd(X, Y))",
    "bits(__fma_rz(X, Y, X))",
    "bits(__dsqrt_rn(X))",
    "bits(__ddiv_rn(X, Y))",
    "(X < Y) + 2 * (X == Y) + 4 * (X > Y) + 8 * (X != Y) + 16 * !(X <= Y) + 32 * !(X >= Y)",
];

const INTEGERS: &[&str] = &[
    "__umulhi(X, Y)",
    "__mulhi((int)X, (int)Y)",
    "__popc(X)",
    "__clz(X)",
    "__brev(X)",
    "__ffs(X)",
    "__byte_perm(X, Y, e0)",
    "__funnelshift_l(X, Y, e0)",
    "__funnelshift_r(X, Y, e0)",
    "__funnelshift_lc(X, Y, e0)",
    "min((int)X, (int)Y)",
    "max(X, Y)",
    "(int)X >> (Y & 31u)",
    "X << (Y & 31u)",
    "X / (Y | 1u)",
    "X % (Y | 1u)",
    "(int)X / (int)((Y & 7u) + 1u)",
    "(int)X % (int)((Y & 7u) + 2u)",
    "(e1 ^ X) >> (Y & 63u)",
    "(long long)(e1 * X) >> (Y & 63u)",
    "(e1 ^ X) / ((ull)Y | 1ull)",
    "__umul64hi(e1, ~(ull)X)",
    "__mul64hi((long long)e1, ~(long long)X)",
    "__popcll(e1 ^ X)",
    "__clzll((long long)(e1 ^ X))",
    "__sad((int)X, (int)Y, 3u)",
    "__usad(X, Y, 3u)",
    "__dp4a((int)X, (int)Y, 5)",
    "__dp4a(X, Y, 5u)",
    "__mul24((int)X, (int)Y)",
    "__umul24(X, Y)",
    "__hadd((int)X, (int)Y)",
    "__uhadd(X, Y)",
    "__rhadd((int)X, (int)Y)",
];
