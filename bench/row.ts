/** The result of one benchmark. */
export interface BenchRow {
  name: string;
  /** Printed figures with units, by name. */
  figures: Record<string, string>;
  limit: string;
  met: boolean;
}
