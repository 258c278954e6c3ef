/**
 * The error function in double precision, which Math does not have: rational approximations of FreeBSD's msun (`s_erf.c`), error below one
 * unit in the last place. For the rows of erf and gelu.
 */

const ERX = 0.8450629115104675
const EFX = 0.1283791670955126

// Highest degree first, for Horner's rule. On [0, 0.84375]: erf x = x + x · P/Q(x²).
const PP = [-2.3763016656650163e-5, -0.005770270296489442, -0.02848174957559851, -0.3250421072470015, 0.12837916709551256]
const QQ = [-3.960228278775368e-6, 0.00013249473800432164, 0.005081306281875766, 0.0650222499887673, 0.39791722395915535, 1]
// On [0.84375, 1.25]: erf x = ERX + P/Q(x − 1).
const PA = [
  -0.002166375594868791, 0.035478304325618236, -0.11089469428239668, 0.31834661990116175, -0.3722078760357013, 0.41485611868374833,
  -0.0023621185607526594,
]
const QA = [0.011984499846799107, 0.01363708391202905, 0.12617121980876164, 0.07182865441419627, 0.540397917702171, 0.10642088040084423, 1]
// Above: erfc x = exp(−x² − 0.5625 + R/S(1/x²)) / x, on [1.25, 1/0.35] and beyond.
const RA = [
  -9.814329344169145, -81.2874355063066, -184.60509290671104, -162.39666946257347, -62.375332450326006, -10.558626225323291,
  -0.6938585727071818, -0.009864944034847148,
]
const SA = [
  -0.0604244152148581, 6.570249770319282, 108.63500554177944, 429.00814002756783, 645.3872717332679, 434.56587747522923, 137.65775414351904,
  19.651271667439257, 1,
]
const RB = [
  -483.5191916086514, -1025.0951316110772, -637.5664433683896, -160.63638485582192, -17.757954917754752, -0.799283237680523,
  -0.0098649429247001,
]
const SB = [
  -22.44095244658582, 474.52854120695537, 2553.0504064331644, 3199.8582195085955, 1536.729586084437, 325.7925129965739, 30.33806074348246,
  1,
]

function horner(coefficients: readonly number[], x: number): number {
  let y = coefficients[0]!
  for (let i = 1; i < coefficients.length; i++) y = y * x + coefficients[i]!
  return y
}

export function erf(x: number): number {
  const a = Math.abs(x)
  if (a < 0.84375) return a < 3.7e-9 ? x + EFX * x : x + x * (horner(PP, x * x) / horner(QQ, x * x))
  return x < 0 ? tail(a) - 1 : 1 - tail(a)
}

/** 1 − erf x, without the loss of digits that the difference would have for large x. */
export function erfc(x: number): number {
  if (x < 0.84375) return 1 - erf(x)
  return tail(x)
}

/** erfc x for x ≥ 0.84375. */
function tail(x: number): number {
  if (x < 1.25) return 1 - ERX - horner(PA, x - 1) / horner(QA, x - 1)
  if (x >= 28) return 0
  const s = 1 / (x * x)
  const ratio = x < 1 / 0.35 ? horner(RA, s) / horner(SA, s) : horner(RB, s) / horner(SB, s)
  // x² is split, because its rounding error would be multiplied by x² in the exponential.
  const z = Math.fround(x)
  return (Math.exp(-z * z - 0.5625) * Math.exp((z - x) * (z + x) + ratio)) / x
}

/**
 * The text by which gpu.js finds, of a ≥ 0, `series`, which is erf a / a where a < 1, and `tail`, which is erfc a elsewhere. Polynomials of Cephes
 * (Moshier, `ndtrf.c`), error 2e-7. a² is split into a part that is exact in float32 and the rest, since its rounding error would be multiplied in the exponential.
 */
export const ERFC = `const s = a * a;
    const series = ((((((7.853861353153693e-5 * s - 8.010193625184903e-4) * s + 5.188327685732524e-3) * s - 2.685381193529856e-2) * s + 1.128358514861418e-1) * s - 3.761262582423300e-1) * s + 1.128379165726710);
    let tail = 0;
    if (a != a) { tail = a; }
    if (a >= 1 && a < 10.5) {
      const h = Math.floor(a * 256) / 256;
      const q = 1 / a;
      const y = q * q;
      let p = ((((((((2.326819970068386e-2 * y - 1.387039388740657e-1) * y + 3.687424674597105e-1) * y - 5.824733027278666e-1) * y + 6.210004621745983e-1) * y - 4.944515323274145e-1) * y + 3.404879937665872e-1) * y - 2.741127028184656e-1) * y + 5.638259427386472e-1);
      if (a >= 2) {
        p = (((((((-10.47766399936249 * y + 12.97719955372516) * y - 7.495518717768503) * y + 2.921019019210786) * y - 1.015265279202700) * y + 4.218463358204948e-1) * y - 2.820767439740514e-1) * y + 5.641895067754075e-1);
      }
      tail = Math.exp(-h * h) * Math.exp((h - a) * (h + a)) * q * p;
    }`
