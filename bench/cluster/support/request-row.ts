import { milliseconds, type Row } from '../row.ts';

/** How often a process made a kind of request, and how long all of them took. */
export interface Timing {
  readonly label: string;
  readonly count: number;
  readonly seconds: number;
}

/** Count and sum of each histogram of a metric `NAME_duration_seconds`, by one label. */
export function timings(page: string, name: string, label: string): Timing[] {
  const read = (suffix: string) =>
    new Map(
      [...page.matchAll(new RegExp(`^${name}_duration_seconds_${suffix}\\{${label}="([^"]*)"\\} (\\S+)$`, 'gm'))].map(
        ([, key = '', value]): [string, number] => [key, Number(value)],
      ),
    );
  const sums = read('sum');
  return [...read('count')].map(([key, count]) => ({ label: key, count, seconds: sums.get(key) ?? 0 }));
}

/** What was added between two looks at the same process. */
export function timingsSince(before: readonly Timing[], after: readonly Timing[]): Timing[] {
  const earlier = new Map(before.map((timing) => [timing.label, timing]));
  return after.map(({ label, count, seconds }) => {
    const known = earlier.get(label);
    return { label, count: count - (known?.count ?? 0), seconds: seconds - (known?.seconds ?? 0) };
  });
}

/** The requests of each of `times` operations. */
export function requestRow(what: string, all: readonly Timing[], times: number): Row {
  const used = all.filter(({ count }) => count > 0);
  const each = used.map(({ label, count, seconds }) => {
    return `${(count / times).toFixed(1)} × ${label} ${milliseconds((seconds / count) * 1_000)}`;
  });
  const total = used.reduce((sum, { count }) => sum + count, 0);
  const note = `mean of each, without long polls: ${each.join(', ')}`;
  return { kind: 'reference', what, value: (total / times).toFixed(1), note };
}
