/** The host's `Math.sin` and `Math.cos`, for arguments whose reduction needs more bits than the kernels have of π. */

@external('math', 'sin')
export declare function hostSin(x: f64): f64
@external('math', 'cos')
export declare function hostCos(x: f64): f64
