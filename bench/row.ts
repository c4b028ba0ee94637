/** One line of the table of speeds. */
export interface BenchRow {
  name: string;
  /** Figures as they are printed, units included, by name. */
  figures: Record<string, string>;
  limit: string;
  met: boolean;
}
