const VARIABLES = ['HTTPS_PROXY', 'https_proxy'] as const;

interface WithGrants {
  spec: { grants?: { network?: readonly string[] | undefined } | undefined };
}

/** What a proxy of the environment does for a run, when it is less than its name promises. It contains no value of a variable. */
export function proxyNote(
  environment: Readonly<Record<string, string | undefined>>,
  agents: readonly WithGrants[],
): string | undefined {
  const name = VARIABLES.find((variable) => (environment[variable] ?? '') !== '');
  if (name === undefined) return undefined;
  const tools = 'tools connect to their hosts directly, because temper run vets their addresses';
  if (environment['NODE_USE_ENV_PROXY'] !== '1')
    return `${name} has no effect: set NODE_USE_ENV_PROXY=1 to call model providers through this proxy; ${tools}`;
  const hasHosts = agents.some(({ spec }) => (spec.grants?.network ?? []).length > 0);
  return hasHosts ? `${name} serves model providers alone: ${tools}` : undefined;
}
