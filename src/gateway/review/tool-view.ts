import { builtInDescriptors } from '../../engine/built-in.ts';
import { createToolViews } from '../../engine/tool-views.ts';
import type { ForgedToolDeps } from '../../forge/forged-tool.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import type { BrokeredTools } from '../brokered/port.ts';
import type { Tool, ToolView } from '../../tools/contract.ts';

const neverRun = (): Promise<never> =>
  Promise.reject(new TemperError('TEMPER_INTERNAL', 'a tool was called in the gateway, which only describes tools'));

function failSync(): never {
  throw new TemperError('TEMPER_INTERNAL', 'a tool was called in the gateway, which only describes tools');
}

/** The gateway describes tools and never runs them. */
const FORGED: Omit<ForgedToolDeps, 'describe'> = {
  sandbox: { run: neverRun },
  clock: systemClock,
  schemas: { check: () => failSync(), validate: () => failSync() },
  hostCalls: () => failSync(),
};

/** The tools an agent sees in one session, as descriptions for the review of another tool. */
export function descriptionOnlyView(
  tools: readonly RegisteredTool[],
  scope: { agent: string; namespace: string; session: string },
  brokered: BrokeredTools,
): ToolView {
  const ofGateway = brokered.list(scope.namespace).map(({ descriptor }) => descriptor);
  const builtIn: Tool[] = [...builtInDescriptors(), ...ofGateway].map((descriptor) => ({ descriptor, call: neverRun }));
  const store = { resolve: () => [...tools], onChange: () => () => undefined, drop: neverRun, closeSession: neverRun };
  return createToolViews({ tools: store, builtIn, forged: FORGED })(scope);
}
