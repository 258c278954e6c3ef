/** Prepares a run's points for a picture: smooths them, and makes them fewer. Pure functions, used by `plot.ts`. */

/** A point of a curve; y is null where the curve has a gap. */
export type Point = readonly [x: number, y: number | null]

/**
 * The running mean of TensorBoard: each value counts `weight` times as much as the next one, and the first values are divided by the weight that they have had so far. Gaps stay, and do not count.
 * @param weight from 0 (nothing changes) to below 1
 */
export function smoothed(points: readonly Point[], weight: number): Point[] {
  let [sum, share] = [0, 0]
  return points.map(([x, y]) => {
    if (y === null) return [x, null]
    sum = weight * sum + (1 - weight) * y
    share = weight * share + (1 - weight)
    return [x, sum / share]
  })
}

/** A value that an axis can show; null makes a gap. */
export function drawable(y: number, isLog: boolean): number | null {
  return Number.isFinite(y) && (!isLog || y > 0) ? y : null
}

/**
 * At most `max` points, in their order: of each interval the lowest and the highest point stay, so no peak is lost, and a gap stays a gap. The picture has fewer pixels than that.
 */
export function thinned(points: readonly Point[], max: number): readonly Point[] {
  if (points.length <= max) return points
  const size = Math.ceil((3 * points.length) / max)
  const kept: Point[] = []
  for (let from = 0; from < points.length; from += size) {
    const to = Math.min(from + size, points.length)
    const chosen = new Set<number>()
    let [low, high, gap] = [-1, -1, -1]
    for (let i = from; i < to; i++) {
      const y = points[i]![1]
      if (y === null) gap = i
      else {
        if (low < 0 || y < points[low]![1]!) low = i
        if (high < 0 || y > points[high]![1]!) high = i
      }
    }
    for (const i of [low, high, gap]) if (i >= 0) chosen.add(i)
    for (const i of [...chosen].sort((a, b) => a - b)) kept.push(points[i]!)
  }
  return kept
}
