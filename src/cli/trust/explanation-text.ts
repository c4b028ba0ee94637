import { printable } from '../../lib/printable.ts';
import type { TrackExplanation, TrustExplanation } from '../../policy/trust/explain.ts';
import { table } from '../table.ts';

/** The explanation for a terminal: the level, the score, what is missing, what would lower it, and when it is evaluated again. */
export function explanationText(agent: string, policy: string, explanation: TrustExplanation): string {
  const { level, strategy, initial, ceiling, tasks, tracks, lowering, nextEvaluationAt } = explanation;
  const quality =
    tasks.quality === undefined ? 'no rating' : `mean rating ${tasks.quality} of 10 over ${tasks.rated} rated`;
  return [
    `Agent ${show(agent)} has level ${show(level)} under TrustPolicy ${show(policy)} (strategy ${strategy}, initial ${show(initial)}, ceiling ${show(ceiling)}).`,
    ...changeLines(explanation),
    `Tasks: ${tasks.completed} of ${tasks.ended} completed, ${quality}${since('last one', tasks.lastTaskAt)}${since('counted from', tasks.countedFrom)}.`,
    ...categoryLines(tasks),
    ...tracks.flatMap(trackLines),
    ...(lowering.length === 0 ? ['Nothing lowers the level.'] : ['Lowers the level:']),
    ...lowering.map(
      ({ rule, lowers, detail, at }) => `  ${rule}: ${show(detail)}${lowers ? ' (now)' : since('at', at)}`,
    ),
    nextEvaluationAt === undefined
      ? 'It is evaluated again with the next task, rating or change of a spec.'
      : `It is evaluated again at ${nextEvaluationAt}, and with each task, rating or change of a spec.`,
    '',
  ].join('\n');
}

function changeLines({ since: at, reason, approvals, isCurrent }: TrustExplanation): string[] {
  return [
    ...(at === undefined || reason === undefined ? [] : [`Last change at ${at}: ${show(reason)}`]),
    ...approvals.map(
      ({ level, approval, since: from }) => `Approved: ${show(level)} by Approval ${show(approval)}, ${from}.`,
    ),
    ...(isCurrent
      ? []
      : ['A spec changed, and the level is evaluated again; until then the initial level is the highest.']),
  ];
}

function categoryLines({ categories = [] }: TrustExplanation['tasks']): string[] {
  const used = categories.map(
    ({ category, ended, completed, rated }) => `${show(category)} ${completed} of ${ended} completed, ${rated} rated`,
  );
  return used.length === 0 ? [] : [`Tool categories of the tasks: ${used.join('; ')}.`];
}

function trackLines({ category, level, score, terms, next }: TrackExplanation): string[] {
  const name = category === undefined ? '' : `Category ${show(category)}, level ${show(level)}: `;
  if (next === undefined) return category === undefined ? [] : [`${name}no higher level.`];
  const rows = next.requirements.map(({ rule, met, required, actual }) => [met ? 'yes' : 'NO', rule, required, actual]);
  const scoreLines =
    score === undefined || terms === undefined
      ? []
      : [
          `Score ${score.toFixed(4)}:`,
          indent(
            table(
              ['TERM', 'VALUE', 'WEIGHT', 'FROM'],
              terms.map((term) => [term.name, term.value.toFixed(2), `${term.weight} %`, term.source]),
            ),
          ),
        ];
  const approval = next.needsApproval ? ', with an approval' : '';
  return [
    ...scoreLines,
    `${name}Next level ${next.level}${approval}:`,
    indent(table(['MET', 'RULE', 'REQUIRED', 'THERE'], rows)),
  ];
}

function since(what: string, time: string | undefined): string {
  return time === undefined ? '' : `, ${what} ${time}`;
}

function indent(text: string): string {
  return text.trimEnd().replaceAll(/^/gm, '  ');
}

function show(text: string): string {
  return printable(text, 600);
}
