/**
 * The known name that is nearest to a mistyped name by edit distance; undefined when none is within `most` edits, by default a third of the
 * length of the name.
 */
export function suggestName(wanted: string, known: Iterable<string>, most?: number): string | undefined {
  const lower = wanted.slice(0, 64).toLowerCase();
  let best: string | undefined;
  let bestDistance = (most ?? Math.max(1, Math.floor(lower.length / 3))) + 1;
  for (const name of known) {
    const distance = editDistance(lower, name.slice(0, 64).toLowerCase(), bestDistance);
    if (distance < bestDistance) {
      best = name;
      bestDistance = distance;
    }
  }
  return best;
}

/**
 * The number of insertions, deletions, substitutions and swaps of adjacent characters that turn one text into the other. A number above `most`
 * stands for any number above it, and takes less time.
 */
export function editDistance(a: string, b: string, most = Infinity): number {
  // What both texts begin or end with takes no edit.
  let start = 0;
  while (start < a.length && start < b.length && a.charCodeAt(start) === b.charCodeAt(start)) start += 1;
  let [endA, endB] = [a.length, b.length];
  while (endA > start && endB > start && a.charCodeAt(endA - 1) === b.charCodeAt(endB - 1)) {
    endA -= 1;
    endB -= 1;
  }
  return distanceBetween(a.slice(start, endA), b.slice(start, endB), most);
}

function distanceBetween(a: string, b: string, most: number): number {
  if (a.length === 0 || b.length === 0) return a.length + b.length;
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  let leastBefore = 0;
  for (let row = 1; row <= a.length; row += 1) {
    const current = nextRow(a, b, previous, beforePrevious);
    const least = Math.min(...current);
    // A later row is at least the last one, or with a swap one more than the row before it.
    if (least > most && leastBefore >= most) return most + 1;
    leastBefore = least;
    beforePrevious = previous;
    previous = current;
  }
  return previous[b.length] ?? 0;
}

/** The distances of the next character of `a` from each beginning of `b`. */
function nextRow(a: string, b: string, previous: readonly number[], beforePrevious: readonly number[]): number[] {
  const row = (previous[0] ?? 0) + 1;
  const current = [row];
  for (let column = 1; column <= b.length; column += 1) {
    const same = a[row - 1] === b[column - 1];
    let best = Math.min(
      (previous[column - 1] ?? 0) + (same ? 0 : 1),
      (previous[column] ?? 0) + 1,
      (current[column - 1] ?? 0) + 1,
    );
    const swapped = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
    if (swapped && row > 1) best = Math.min(best, (beforePrevious[column - 2] ?? 0) + 1);
    current.push(best);
  }
  return current;
}
