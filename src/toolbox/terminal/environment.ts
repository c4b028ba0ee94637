import { patternSet } from '../../policy/patterns/pattern-set.ts';

/** Parts of names whose values are likely to be secrets. */
const SECRET_PARTS = ['KEY', 'SECRET', 'TOKEN', 'PASSWORD', 'PASSWD', 'CREDENTIAL', 'PRIVATE'];

/** Names that choose what a program loads or starts, and those of Temper itself. */
const CODE_PREFIXES = ['LD_', 'DYLD_', 'GIT_', 'BASH_', 'TEMPER_', 'npm_config_', 'NPM_CONFIG_'];
const CODE_NAMES: ReadonlySet<string> = new Set(
  'PYTHONPATH PYTHONSTARTUP PYTHONHOME NODE_PATH NODE_OPTIONS RUBYLIB RUBYOPT PERL5LIB PERL5OPT ENV SHELLOPTS IFS PAGER EDITOR VISUAL BROWSER GCONV_PATH PATH HOME TMPDIR USER LOGNAME TERM'.split(
    ' ',
  ),
);

const MAX_VALUE = 8_192;

/** Whether no grant gives a program this variable. */
function isWithheldVariable(name: string): boolean {
  const upper = name.toUpperCase();
  return (
    SECRET_PARTS.some((part) => upper.includes(part)) ||
    CODE_PREFIXES.some((prefix) => name.startsWith(prefix)) ||
    CODE_NAMES.has(name)
  );
}

/** The variables that `spec.grants.environment` names, without those that no program gets. */
export function grantedEnvironment(
  grants: readonly string[] | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const granted = patternSet(grants, 'name');
  if (granted.size === 0) return {};
  return Object.fromEntries(
    Object.entries(environment).flatMap(([name, value]) =>
      value !== undefined && value.length <= MAX_VALUE && granted.has(name) && !isWithheldVariable(name)
        ? [[name, value] as const]
        : [],
    ),
  );
}
