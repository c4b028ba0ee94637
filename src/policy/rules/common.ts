import type { PatternSet } from '../patterns/pattern-set.ts';
import type { PreparedPolicy } from '../prepare.ts';
import type { TAINTED_OPERATIONS } from '../../api/v1alpha1/actions.ts';
import { ASSIST_TOOLS } from '../../api/v1alpha1/agent/tool-profiles.ts';
import { deny, notApplicable, passed } from './rule.ts';
import type { Rule, RuleNote, RuleViolation } from './rule.ts';
import type { PolicyRequest } from '../types.ts';

/** The `suspend` fields. These rules run before all others. */
export function suspendRules({ snapshot }: PreparedPolicy): Rule<PolicyRequest>[] {
  const { agent, policy } = snapshot;
  return [
    {
      id: 'suspend.policy',
      check: () =>
        policy.spec.suspend === true
          ? deny(`TrustPolicy "${policy.name}" is suspended: nothing is allowed until a user resumes it.`)
          : undefined,
      explain: () => passed(`TrustPolicy "${policy.name}" is not suspended`),
    },
    {
      id: 'suspend.agent',
      check: () =>
        agent.spec.suspend === true
          ? deny(`Agent "${agent.name}" is suspended: nothing is allowed until spec.suspend is cleared.`)
          : undefined,
      explain: () => passed(`Agent "${agent.name}" is not suspended`),
    },
  ];
}

/** `spec.mode` of the agent: what it may do at all, whatever it is granted. */
export function modeRules({ snapshot }: PreparedPolicy): Rule<PolicyRequest>[] {
  const { name, spec } = snapshot.agent;
  const mode = spec.mode ?? 'Full';
  if (mode === 'Full') return [];
  const allows = mode === 'Observe' ? 'no tool and no effect' : `only ${ASSIST_TOOLS.join(', ')}`;
  const violation = deny(`Agent "${name}" has mode ${mode}, which allows ${allows}; spec.mode Full allows its grants.`);
  return [
    {
      id: 'mode',
      check: (request) => (isWithinMode(mode, request) ? undefined : violation),
      explain: () => passed(`mode ${mode} allows it`),
    },
  ];
}

function isWithinMode(mode: 'Observe' | 'Assist', request: PolicyRequest): boolean {
  if (request.kind === 'Model' || request.kind === 'Promote') return true;
  if (mode === 'Observe') return false;
  if (request.kind === 'Tool') return !request.forged && ASSIST_TOOLS.includes(request.name.trim().toLowerCase());
  return (request.kind === 'File' || request.kind === 'Memory') && request.access === 'read';
}

type TaintedAction = (typeof TAINTED_OPERATIONS)[number];

const TAINTED_NOUNS: Readonly<Record<TaintedAction, string>> = {
  forge: 'forging',
  promote: 'promotion',
  message: 'messages to other agents',
  network: 'network access',
  schedule: 'schedules that the agent makes',
  spawn: 'starting and ending child agents',
  memory: 'writing shared memory',
};

/** Denies an action while the session contains untrusted content. */
export function taintedRule<R>(
  prepared: PreparedPolicy,
  what: TaintedAction,
  applies: (request: R) => boolean = always,
): Rule<R> {
  const { snapshot, taintedDeny } = prepared;
  const denied = snapshot.tainted && taintedDeny.has(what);
  const violation: RuleViolation = deny(
    `The session contains untrusted content, and TrustPolicy "${snapshot.policy.name}" then denies ${TAINTED_NOUNS[what]}; use a fresh session.`,
  );
  return {
    id: `tainted.${what}`,
    check: (request) => (denied && applies(request) ? violation : undefined),
    explain: () =>
      snapshot.tainted
        ? passed(`the session is tainted; tainted.deny does not name ${what}, or the request does not concern it`)
        : notApplicable('the session is not tainted'),
  };
}

/** Why a list of what remains in a tainted session permits a request, or does not concern it. */
export function taintedListNote(isTainted: boolean, field: string, list: PatternSet | undefined): RuleNote {
  if (!isTainted) return notApplicable('the session is not tainted');
  return list === undefined ? notApplicable(`${field} is not set`) : passed(`${field} is ${list.describe()}`);
}

function always(): boolean {
  return true;
}
