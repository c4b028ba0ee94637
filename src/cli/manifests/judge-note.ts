import { judgeProblem } from '../../api/checks/warnings.ts';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import { printable } from '../../lib/printable.ts';

/**
 * Which agents may forge and have a judge that is, behind the aliases of `resolve`, one of their own models; undefined when there is none.
 * The manifests alone do not show it.
 */
export function judgeNote(
  agents: readonly { agent: Agent; policy: TrustPolicy }[],
  resolve: (name: string) => string,
): string | undefined {
  const notes = agents.flatMap(({ agent, policy }): string[] => {
    const problem = agent.spec.forge?.enabled === true ? judgeProblem(agent.spec, policy.spec, resolve) : undefined;
    if (problem?.reason !== 'JudgeIsAuthor') return [];
    const model = resolve(problem.judge);
    const alias = model === problem.judge ? '' : ` (${model})`;
    return [
      `every tool that agent "${agent.metadata.name}" forges is refused: the judge ${problem.judge}${alias} of TrustPolicy "${policy.metadata.name}" is a model of the agent; configure another model for the judge, or set spec.models.judgeMayBeAuthor of the policy to true`,
    ];
  });
  return notes.length === 0 ? undefined : printable(notes.join('; '), 2_000);
}
