import type { ParsedArtifact } from '../parse-artifact.ts';
import type { ForgeViolation } from '../request.ts';
import type { TestResult } from '../types.ts';

const MEBIBYTE = 1_048_576;

/** Compares the measured use of the slowest and the largest run with the limits of the tool. */
export function checkResourceLimits(open: ParsedArtifact, results: readonly TestResult[]): ForgeViolation[] {
  const { milliseconds, heapBytes } = measure(results);
  const violations: ForgeViolation[] = [];
  if (milliseconds > open.durationMilliseconds) {
    const message = `the slowest test took ${Math.ceil(milliseconds)} ms of the ${open.durationMilliseconds} ms allowed`;
    violations.push({ code: 'TEMPER_FORGE_LIMITS', message });
  }
  if (heapBytes > open.memoryBytes) {
    const message = `the largest test used ${mebibytes(heapBytes)} of the ${mebibytes(open.memoryBytes)} allowed`;
    violations.push({ code: 'TEMPER_FORGE_LIMITS', message });
  }
  return violations;
}

export function measure(results: readonly TestResult[]): { milliseconds: number; heapBytes: number } {
  return {
    milliseconds: Math.max(0, ...results.map((result) => result.milliseconds)),
    heapBytes: Math.max(0, ...results.map((result) => result.heapBytes)),
  };
}

/** The measured use for the gate record: `8 ms · 2.1 MiB`. */
export function usageNote(results: readonly TestResult[]): string {
  const { milliseconds, heapBytes } = measure(results);
  const heap = heapBytes === 0 ? '' : ` · ${mebibytes(heapBytes)}`;
  return `${Math.max(1, Math.round(milliseconds))} ms${heap}`;
}

function mebibytes(bytes: number): string {
  return `${(bytes / MEBIBYTE).toFixed(1)} MiB`;
}
