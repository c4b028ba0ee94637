import { type MemoryFinding, type MemoryBytes, scanRecords } from '../../agent/tools/memory-scan.ts';

/** A memory and a query, in a form that another thread gets without a copy per record. */
export interface PackedMemory {
  query: string | undefined;
  /** All records, one after the other: those of the agent first. */
  bytes: SharedArrayBuffer;
  /** The end of each record. */
  ends: readonly number[];
  /** Number of records of the agent. */
  own: number;
}

export function packMemory(query: string | undefined, { own, shared }: MemoryBytes): PackedMemory {
  const records = [...own, ...shared];
  const bytes = new SharedArrayBuffer(records.reduce((sum, { byteLength }) => sum + byteLength, 0));
  const target = new Uint8Array(bytes);
  let end = 0;
  const ends = records.map((record) => {
    target.set(record, end);
    end += record.byteLength;
    return end;
  });
  return { query, bytes, ends, own: own.length };
}

export function scanPacked({ query, bytes, ends, own }: PackedMemory): MemoryFinding[] {
  const all = new Uint8Array(bytes);
  // Copies: a decoder reads no shared memory.
  const records = ends.map((end, index) => all.slice(ends[index - 1] ?? 0, end));
  return scanRecords(query, { own: records.slice(0, own), shared: records.slice(own) });
}
