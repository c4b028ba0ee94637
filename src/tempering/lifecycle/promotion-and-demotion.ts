import type { Digest } from '../../lib/canonical.ts';
import { createDemotion, type Demotion } from '../promotion/demotion.ts';
import { createReactivation, type Reactivation } from '../hygiene/reactivation.ts';
import { createExaminer } from '../examination/examiner.ts';
import { createModelTesters } from '../examination/testers/model-testers.ts';
import type { LifecycleContext, LocalLifecyclePorts } from './ports.ts';
import { NO_CANARIES } from '../canary/canaries.ts';
import { createPanel } from '../judge/panel.ts';
import { createPromotion, type Promotion } from '../promotion/promotion.ts';
import { promotionRules } from '../promotion/promotion-rules.ts';
import { createVerifier } from '../verification/verifier.ts';
import type { CallerContext, Tool } from '../../tools/contract.ts';
import { deniedHostCalls } from '../../tools/host/host-calls.ts';
import { createInvoker } from '../../tools/invoker.ts';
import { NO_LOOP_GUARD } from '../../tools/loop-guard.ts';
import { createToolView } from '../../tools/view.ts';

const TOOL_TIMEOUT_MS = 60_000;

/** Creates promotion and demotion for the tools of one agent. */
export function createPromotionAndDemotion(
  context: LifecycleContext,
  here: LocalLifecyclePorts,
  builtIn: readonly Tool[],
): { promotion: Promotion; demotion: Demotion; reactivation: Reactivation } {
  const { ports, agent, agentModel, events, schemas } = context;
  const { registry, records } = here;
  const { clock, ids, approvals, audit } = ports;
  const nonce = (): string => ids.next('nonce');
  const rules = () => promotionRules(agent.policy.spec);
  const limits = () => context.decider({ agent: agent.name, namespace: agent.namespace, session: '' }).forgeLimits;
  const verifier = verifierOf(context, here, builtIn);
  const { canaries = NO_CANARIES } = here;
  const model = context.reviewModel;
  const panel = createPanel({ model, reviewers: agentModel.reviewers, clock, nonce, canaries });
  const testers = createModelTesters({ model, clock, nonce }, agentModel.testers);
  const examiner = createExaminer({ verifier, schemas, testers });
  const promotion = createPromotion({
    registry,
    verifier,
    examiner,
    panel,
    approvals,
    audit,
    records,
    schemas,
    clock,
    events,
    nonce,
    rules,
    limits,
    persistSource: () => agent.spec.forge?.persistSource ?? true,
  });
  const owner = { agent: agent.name, namespace: agent.namespace };
  return {
    promotion,
    demotion: createDemotion({ registry, verifier, schemas, events, rules }),
    reactivation: createReactivation({
      registry,
      verifier,
      schemas,
      events,
      audit,
      clock,
      owner,
      limits,
      minSuccessPercent: () => rules().minSuccessPercent,
    }),
  };
}

/** Creates a verifier that calls only built-in tools without side effects, with the permissions of the agent. */
function verifierOf(context: LifecycleContext, here: LocalLifecyclePorts, builtIn: readonly Tool[]) {
  const { ports, agent, schemas, decider, events } = context;
  const { clock, ledger, approvals, audit } = ports;
  const view = createToolView(builtIn.filter((tool) => !tool.descriptor.sideEffects));
  const invoker = createInvoker({
    view: () => view,
    decider,
    loopGuard: () => NO_LOOP_GUARD,
    ledger,
    approvals,
    audit,
    schemas,
    events,
    clock,
    timeoutOf: () => TOOL_TIMEOUT_MS,
    observe: () => undefined,
  });
  const caller: CallerContext = {
    agent: agent.name,
    namespace: agent.namespace,
    session: 'verification',
    rootMessage: 'verification',
    stack: [],
    origin: 'Compose',
  };
  return createVerifier({
    openSandbox: () => here.openFreshSandbox(),
    dependency: (digest) => {
      const tool = here.registry.get(digest as Digest);
      return tool?.active === true ? tool.artifact : undefined;
    },
    view,
    invoke: (tool, input, op) => invoker.invoke(tool, input, caller, op),
    host: deniedHostCalls,
    schemas,
    clock,
  });
}
