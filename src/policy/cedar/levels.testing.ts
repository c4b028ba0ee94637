import type { SubConstraints } from '../../api/v1alpha1/trust/constraints.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';

/** What a level permits, as attributes of the principal. Written from the documentation, not from the tables of the decider. */
export interface CedarLevel {
  [name: string]: string | number | boolean | string[];
  rank: number;
  categories: string[];
  grantable: string[];
  files: string;
  network: string;
  git: string;
  terminal: string;
  approvals: string[];
  forgeModes: string[];
  forgeApis: boolean;
}

const ISOLATED = ['file_system', 'code_execution', 'version_control'];
const GRANTABLE = ['memory', 'communication'];
const EVERY = [
  ...ISOLATED,
  'web',
  'terminal',
  'analytics',
  'database',
  'design',
  'communication',
  'deployment',
  'memory',
  'mcp',
  'other',
];

const BUILT_IN: Readonly<Record<string, CedarLevel>> = {
  sandboxed: {
    rank: 0,
    categories: ISOLATED,
    grantable: GRANTABLE,
    files: 'Workspace',
    network: 'None',
    git: 'LocalOnly',
    terminal: 'None',
    approvals: [],
    forgeModes: ['Compose'],
    forgeApis: false,
  },
  restricted: {
    rank: 1,
    categories: [...ISOLATED, 'web'],
    grantable: GRANTABLE,
    files: 'Project',
    network: 'Allowlist',
    git: 'ReadAndBranch',
    terminal: 'None',
    approvals: ['deploy', 'db:mutate'],
    forgeModes: ['Compose', 'Sandbox'],
    forgeApis: false,
  },
  standard: {
    rank: 2,
    categories: [...ISOLATED, 'web', 'terminal', 'analytics'],
    grantable: GRANTABLE,
    files: 'Project',
    network: 'Open',
    git: 'Full',
    terminal: 'RestrictedCommands',
    approvals: [],
    forgeModes: ['Compose', 'Sandbox'],
    forgeApis: true,
  },
  elevated: {
    rank: 3,
    categories: EVERY,
    grantable: GRANTABLE,
    files: 'Full',
    network: 'Open',
    git: 'Full',
    terminal: 'Full',
    approvals: [],
    forgeModes: ['Compose', 'Sandbox'],
    forgeApis: true,
  },
};

/** The members of the principal that limit a request; each of them has to permit it. */
export const LIMITS = ['level', 'levelBase', 'ceiling', 'ceilingBase', 'constraints', 'ownConstraints'] as const;

/** Everything that limits a request: the level that the agent earned, the ceiling, their bases, and the constraints of policy and agent. */
export function limitsOf(
  earned: string,
  policy: TrustPolicySpec,
  own: SubConstraints | undefined,
): Record<(typeof LIMITS)[number], CedarLevel> {
  const [level, levelBase] = levelsOf(earned, policy);
  const [ceiling, ceilingBase] = levelsOf(policy.level?.ceiling ?? 'standard', policy);
  const constraints = withConstraints(builtIn('elevated'), policy.constraints);
  const ownConstraints = withConstraints(builtIn('elevated'), own);
  return { level, levelBase, ceiling, ceilingBase, constraints, ownConstraints };
}

/** A custom level is its base and, beside it, its own limits. */
function levelsOf(name: string, policy: TrustPolicySpec): [own: CedarLevel, base: CedarLevel] {
  const custom = policy.levels?.find((level) => level.name === name);
  if (custom === undefined) return [builtIn(name), builtIn(name)];
  const base = builtIn(custom.base);
  const own = { ...builtIn('elevated'), rank: base.rank, categories: custom.categories, grantable: custom.categories };
  return [withConstraints(own, custom.constraints), base];
}

function builtIn(name: string): CedarLevel {
  const level = BUILT_IN[name];
  if (level === undefined) throw new Error(`no level ${name}`);
  return level;
}

function withConstraints(level: CedarLevel, constraints: SubConstraints = {}): CedarLevel {
  const { files, network, git, terminal, requireApproval } = constraints;
  return {
    ...level,
    ...(files === undefined ? {} : { files }),
    ...(network === undefined ? {} : { network }),
    ...(git === undefined ? {} : { git }),
    ...(terminal === undefined ? {} : { terminal }),
    approvals: [...level.approvals, ...(requireApproval ?? [])],
  };
}
