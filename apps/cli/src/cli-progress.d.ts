/** The part of cli-progress that `live-display.ts` uses; the package brings no types. */
declare module 'cli-progress' {
  export interface RenderParams {
    /** 0…1 */
    readonly progress: number
    readonly value: number
    readonly total: number
    readonly maxWidth: number
  }
  export interface Options<P> {
    readonly format: (options: unknown, params: RenderParams, payload: P) => string
    readonly stream?: NodeJS.WritableStream
    readonly hideCursor?: boolean
    readonly clearOnComplete?: boolean
    readonly gracefulExit?: boolean
    readonly fps?: number
    readonly autopadding?: boolean
  }
  export interface Bar<P> {
    update(value: number, payload: P): void
    setTotal(total: number): void
  }
  export class MultiBar<P> {
    constructor(options: Options<P>)
    create(total: number, value: number, payload: P): Bar<P>
    /** Writes above the bars; the text ends with a line break. */
    log(text: string): void
    update(): void
    stop(): void
  }
  const cliProgress: { MultiBar: typeof MultiBar }
  export default cliProgress
}
