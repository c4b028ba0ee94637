/** The known names nearest to a mistyped one, best first, at most `limit`; none that shares less than half of it. */
export function closestNames(wanted: string, known: readonly string[], limit = 3): string[] {
  return known
    .map((name) => ({ name, distance: editDistance(wanted.slice(0, 64), name.slice(0, 64)) }))
    .filter(({ name, distance }) => distance <= Math.max(wanted.length, name.length) / 2)
    .sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1))
    .slice(0, limit)
    .map(({ name }) => name);
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const substitution = (previous[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(substitution, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[b.length] ?? 0;
}
