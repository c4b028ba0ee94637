import type { ComposeStep, ToolArtifact, ToolTest } from '../../api/v1alpha1/emergenttool.ts';
import { canonicalJson } from '../../lib/canonical.ts';
import type { Json } from '../../lib/json.ts';
import { codeLines } from '../page/code-lines.ts';
import { type Block, type Box, foreign, foreignList, heading, paragraph, warning } from '../page/document.ts';
import { sourceTokens } from '../page/source-tokens.ts';
import type { ToolReview } from '../tool-review.ts';

/** The whole artifact: implementation, requirements, schemas and tests. */
export function artifactSections(review: ToolReview): Block[] {
  const { artifact } = review;
  return [
    ...implementation(artifact),
    ...judged(review),
    heading(2, 'What the tool may do'),
    requirements(artifact),
    heading(2, 'Input'),
    ...jsonBox(artifact.inputSchema),
    heading(2, 'Output'),
    ...jsonBox(artifact.outputSchema),
    heading(2, 'Tests'),
    ...artifact.tests.flatMap(testCase),
  ];
}

/** Reviewers cite its lines: the source may have comments and names that say what it does not do. */
function judged({ judged: text, verdicts }: ToolReview): Block[] {
  const cited = new Set(verdicts.flatMap(({ citedLines }) => citedLines ?? []));
  if (text === undefined || cited.size === 0) return [];
  return [
    heading(2, 'The tool as judges read it'),
    paragraph(
      'Comments are left out, and names and format are not those of the author. Marked lines are cited by a verdict.',
    ),
    { type: 'box', language: 'text', lines: codeLines(text, [], cited) },
  ];
}

function implementation({ implementation: { mode, source, steps } }: ToolArtifact): Block[] {
  if (mode === 'Compose') return [heading(2, 'Steps'), ...(steps ?? []).flatMap(step)];
  if (source === undefined) return [heading(2, 'Source'), warning('The object does not contain the source.')];
  return [heading(2, 'Source'), { type: 'box', language: 'js', lines: codeLines(source, sourceTokens(source)) }];
}

function step({ name, tool, inputMapping, condition }: ComposeStep, index: number): Block[] {
  return [
    heading(3, `Step ${index + 1}: `, foreign(name)),
    {
      type: 'facts',
      rows: [
        ['Tool', [foreign(tool)]],
        ['Condition', condition === undefined ? ['none'] : [foreign(condition)]],
      ],
    },
    ...jsonBox(inputMapping),
  ];
}

function requirements({ requires, limits }: ToolArtifact): Block {
  return {
    type: 'facts',
    rows: [
      ['Host functions', foreignList(requires.apis, 'none')],
      ['Hosts', foreignList(requires.domains, 'none')],
      ['Paths', foreignList(requires.paths, 'none')],
      ['Maximum duration', [foreign(limits.duration)]],
      ['Maximum memory', [foreign(limits.memory)]],
    ],
  };
}

function testCase({ input, expectedOutput, fixtures }: ToolTest, index: number): Block[] {
  const expected: Block[] =
    expectedOutput === undefined
      ? [paragraph('No output is expected: the case passes when the tool does not fail.')]
      : [paragraph('Expected output'), ...jsonBox(expectedOutput)];
  const recorded = (fixtures ?? []).flatMap(({ tool, input: given, output }): Block[] => [
    paragraph(
      'Recorded result of the tool ',
      foreign(tool),
      given === undefined ? ' for any input' : ' for this input',
    ),
    ...(given === undefined ? [] : jsonBox(given)),
    paragraph('Recorded output'),
    ...jsonBox(output),
  ]);
  return [heading(3, `Case ${index + 1}`), paragraph('Input'), ...jsonBox(input), ...expected, ...recorded];
}

/** JSON text, indented. A text that is not the usual form of its value is shown as it is: an indented form could leave members out. */
function jsonBox(text: string): Block[] {
  const box = (shown: string): Box => ({ type: 'box', language: 'json', lines: codeLines(shown) });
  const value = parse(text);
  if (value !== undefined && [JSON.stringify(value), canonicalOf(value)].includes(text)) {
    return [box(JSON.stringify(value, null, 2))];
  }
  return [warning('The next box is not in the canonical form of JSON, so it is shown as it is.'), box(text)];
}

function canonicalOf(value: Json): string | undefined {
  try {
    return canonicalJson(value);
  } catch {
    // A lone surrogate has no canonical form.
    return undefined;
  }
}

function parse(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
