import { builtInDescriptors } from '../../engine/built-in.ts';
import { createToolViews } from '../../engine/tool-views.ts';
import type { ForgedToolDeps } from '../../forge/forged-tool.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import type { Tool, ToolView } from '../../tools/contract.ts';

const described = (): Promise<never> =>
  Promise.reject(new TemperError('TEMPER_INTERNAL', 'a tool that is only described was called'));

function refuse(): never {
  throw new TemperError('TEMPER_INTERNAL', 'a tool that is only described was called');
}

/** Nothing runs in a gateway: tools are known here, never called. */
const FORGED: Omit<ForgedToolDeps, 'describe'> = {
  sandbox: { run: described },
  clock: systemClock,
  schemas: { check: () => refuse() },
  hostCalls: () => refuse(),
};

/** The tools an agent sees in one session, for who decides about another one. */
export function describedView(
  tools: readonly RegisteredTool[],
  scope: { agent: string; namespace: string; session: string },
): ToolView {
  const builtIn: Tool[] = builtInDescriptors().map((descriptor) => ({ descriptor, call: described }));
  const store = { resolve: () => [...tools], changes: () => () => undefined, closeSession: described };
  return createToolViews({ tools: store, builtIn, forged: FORGED })(scope);
}
