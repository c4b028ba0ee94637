import { parseDuration, parseQuantityBytes } from '../api/quantities.ts';
import type { ToolApi } from '../api/v1alpha1/common.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import type { PreparedPolicy } from './prepare.ts';
import { FORGE_DEFAULTS } from './tables.ts';
import type { ForgeLimits } from './types.ts';

/** The intersection of what the agent requests, the policy allows and the level allows. */
export function forgeLimits(prepared: PreparedPolicy): ForgeLimits {
  const { spec: agent } = prepared.snapshot.agent;
  const policy = prepared.snapshot.policy.spec.forge ?? {};
  const requested = agent.forge?.modes ?? ['Compose'];
  const modes = prepared.level.forgeModes.filter((mode) => requested.includes(mode));
  const allowedApis = policy.apis ?? [];
  const apis = (agent.forge?.apis ?? []).filter((api) => allowedApis.includes(api) && isAllowedAtLevel(prepared, api));
  return {
    allowed: mayForge(prepared) && modes.length > 0,
    modes,
    apis,
    domains: apis.includes('fetch') ? (policy.domains ?? []) : [],
    ...limitsOf(policy.limits ?? {}),
  };
}

function isAllowedAtLevel({ level }: PreparedPolicy, api: ToolApi): boolean {
  return level.forgeApis && (api !== 'fetch' || level.constraints.network !== 'None');
}

type Limits = NonNullable<NonNullable<TrustPolicySpec['forge']>['limits']>;

function limitsOf({
  duration,
  memory,
  whenFull: _ofPromotions,
  ...counts
}: Limits): Omit<ForgeLimits, 'allowed' | 'modes' | 'apis' | 'domains'> {
  return {
    ...FORGE_DEFAULTS,
    ...counts,
    ...(duration === undefined ? {} : { durationMilliseconds: parseDuration(duration) }),
    ...(memory === undefined ? {} : { memoryBytes: parseQuantityBytes(memory) }),
  };
}

/** The limits when the policy is invalid: forging is not allowed. */
export const NO_FORGE: ForgeLimits = {
  allowed: false,
  modes: [],
  apis: [],
  domains: [],
  durationMilliseconds: 0,
  memoryBytes: 0,
  sessionTools: 0,
  agentTools: 0,
  minTestCases: FORGE_DEFAULTS.minTestCases,
};

function mayForge({ snapshot, taintedDeny }: PreparedPolicy): boolean {
  if (snapshot.agent.spec.suspend === true || snapshot.policy.spec.suspend === true) return false;
  if (snapshot.tainted && taintedDeny.has('forge')) return false;
  const { forge, mode = 'Full' } = snapshot.agent.spec;
  return forge?.enabled === true && mode === 'Full';
}
