/** In which process a worker runs: the names of a launch in blocks, later ones where the fewest names are. A name keeps its place. */

/** @param count of processes, at most as many as names */
export function placement(names: readonly string[], count: number): (name: string) => number {
  const places = new Map(names.map((name, i) => [name, Math.floor((i * count) / names.length)]))
  const sizes = Array.from({ length: count }, (_, place) => [...places.values()].filter((one) => one === place).length)
  return (name) => {
    const known = places.get(name)
    if (known !== undefined) return known
    const place = sizes.indexOf(Math.min(...sizes))
    sizes[place]!++
    places.set(name, place)
    return place
  }
}
