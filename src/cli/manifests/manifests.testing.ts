/** For tests: a TrustPolicy and the agent under it, as YAML, with these lines of their specs. */
export function manifestsOf(policy: readonly string[], agent: readonly string[]): string {
  const needed = [
    'trustPolicyRef: {name: standard}',
    'model: {primary: openai/gpt-4o-mini}',
    'prompt: {system: You are careful.}',
  ];
  return `
apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: standard}
spec:
${indented(policy)}
---
apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: analyst}
spec:
${indented([...needed, ...agent])}
`;
}

function indented(lines: readonly string[]): string {
  return lines.map((line) => `  ${line}`).join('\n');
}
