/** Samples of one quantity over time. */
export class Trend {
  readonly #samples: { readonly hours: number; readonly value: number }[] = [];

  add(milliseconds: number, value: number): void {
    this.#samples.push({ hours: milliseconds / 3_600_000, value });
  }

  get last(): number {
    return this.#samples.at(-1)?.value ?? 0;
  }

  /** The change per hour of the straight line through the samples after the first third, in which caches fill. */
  slope(): number {
    const kept = this.#samples.slice(Math.floor(this.#samples.length / 3));
    const mean = (of: (sample: { hours: number; value: number }) => number) =>
      kept.reduce((sum, sample) => sum + of(sample), 0) / kept.length;
    const [hours, value] = [mean((sample) => sample.hours), mean((sample) => sample.value)];
    const spread = kept.reduce((sum, sample) => sum + (sample.hours - hours) ** 2, 0);
    const joint = kept.reduce((sum, sample) => sum + (sample.hours - hours) * (sample.value - value), 0);
    return spread === 0 ? 0 : joint / spread;
  }
}
