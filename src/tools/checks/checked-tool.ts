import type { Json } from '../../lib/json.ts';
import type { CallContext, CallerContext, Tool } from '../contract.ts';

export interface CheckedTool extends Omit<Tool, 'check'> {
  check(input: Json, caller: CallerContext): void;
  call(input: Json, context: CallContext): Promise<Json>;
}

/** A tool whose calls begin with its check, so that a call refuses whatever the check refuses. */
export function checkedTool(tool: CheckedTool): Tool {
  return {
    ...tool,
    // A refusal is a rejection, as every other failure of a call.
    async call(input, context) {
      tool.check(input, context);
      return tool.call(input, context);
    },
  };
}
