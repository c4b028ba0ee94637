import type { ToolDescriptor } from '../../tools/contract.ts';

/** A call that has no effect outside the pod may run again after a crash. */
export function isRepeatable(tool: ToolDescriptor | undefined): boolean {
  return tool !== undefined && tool.locality === 'Local' && !tool.sideEffects;
}
