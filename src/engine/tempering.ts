import type { Digest } from '../lib/canonical.ts';
import { createDemotion, type Demotion } from '../tempering/demotion.ts';
import { createPanel } from '../tempering/panel.ts';
import { createPromotion, type Promotion } from '../tempering/promotion.ts';
import { promotionRules } from '../tempering/promotion-rules.ts';
import { createVerifier } from '../tempering/verifier.ts';
import type { Tool } from '../tools/contract.ts';
import { deniedHostCalls } from '../tools/host-calls.ts';
import { createInvoker } from '../tools/invoker.ts';
import { createLoopGuard } from '../tools/loop-guard.ts';
import { createToolView } from '../tools/view.ts';
import type { TemperingHere } from './ports.ts';
import type { Workshop } from './workshop.ts';

/** A verification makes many calls of few tools on purpose. */
const NO_REPETITION_LIMIT = {
  warnAt: Number.POSITIVE_INFINITY,
  blockAt: Number.POSITIVE_INFINITY,
  breakAt: Number.POSITIVE_INFINITY,
};
const TOOL_MILLISECONDS = 60_000;

/** How tools rise and fall for one agent. */
export function createTempering(
  workshop: Workshop,
  here: TemperingHere,
  builtIn: readonly Tool[],
): { promotion: Promotion; demotion: Demotion } {
  const { ports, agent, agentModel, events, schemas } = workshop;
  const { registry, records } = here;
  const { clock, ids } = ports;
  const nonce = (): string => ids.next('nonce');
  const rules = () => promotionRules(agent.policy.spec);
  const verifier = verifierOf(workshop, here, builtIn);
  const panel = createPanel({ model: workshop.examiner, reviewers: agentModel.reviewers, clock, nonce });
  const promotion = createPromotion({
    ...ports,
    registry,
    records,
    verifier,
    panel,
    schemas,
    events,
    nonce,
    rules,
    limits: () => workshop.decider({ agent: agent.name, namespace: agent.namespace, session: '' }).ceilings,
    persistSource: () => agent.spec.forge?.persistSource ?? true,
  });
  return { promotion, demotion: createDemotion({ registry, verifier, schemas, events, rules }) };
}

/** Verification calls built-in tools without side effects only, with the agent's rights, and reaches nothing else. */
function verifierOf(workshop: Workshop, here: TemperingHere, builtIn: readonly Tool[]) {
  const { ports, agent, schemas } = workshop;
  const view = createToolView(builtIn.filter((tool) => !tool.descriptor.sideEffects));
  const invoker = createInvoker({
    ...ports,
    ...workshop,
    view: () => view,
    loopGuard: () => createLoopGuard(NO_REPETITION_LIMIT),
    timeoutOf: () => TOOL_MILLISECONDS,
    observe: () => undefined,
  });
  const caller = {
    agent: agent.name,
    namespace: agent.namespace,
    session: 'verification',
    rootMessage: 'verification',
    stack: [],
  };
  return createVerifier({
    open: () => here.openFreshSandbox(),
    dependency: (digest) => {
      const tool = here.registry.get(digest as Digest);
      return tool?.active === true ? tool.artifact : undefined;
    },
    view,
    invoke: (tool, input, op) => invoker.invoke(tool, input, caller, op),
    host: deniedHostCalls,
    schemas,
    clock: ports.clock,
  });
}
