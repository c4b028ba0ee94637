import { aReviewedArtifact } from './reviews.testing.ts';
import type { ToolReview } from './tool-review.ts';

/** Texts that try to leave their boxes on a page. */

/** Stands in every hostile text, and must never be outside of a box. */
export const MARKER = 'ZQX';

export const HOSTILE = [
  `${MARKER} \`\` \`${MARKER}\` **${MARKER}** [${MARKER}](https://example.com) @${MARKER} #1`,
  '```\n```` \n# ZQX\n~~~\n<h1>ZQX</h1>\n`````',
  '\n\n# ZQX\n\n> ZQX\n\n- ZQX\n\n| ZQX | ZQX |\n|---|---|\n| ZQX | \\| ZQX |\n---\nZQX\n===',
  '</code></div></main><script>ZQX()</script><img src=x onerror=ZQX><!-- ZQX',
  '"\'><svg/onload=ZQX> &lt;b&gt;ZQX&amp; &#x3c;ZQX&#62;',
  '\u202eZQX\u2066\u200b\u00ad\u{e0041}\u2028ZQX\u0085\u0000\u001b[31mZQX\u{fe0f}\u3164',
  `Z${'\u0336'.repeat(40)}ZQX`,
  `${'`'.repeat(70)} ZQX ${'`'.repeat(69)}`,
  'ZQX`',
  '`ZQX',
  '$$ZQX$$ $`ZQX`$ :ZQX: ZQX@example.com https://ZQX.example www.ZQX.example',
  '\r\rZQX\r\n\r\n    ZQX\tZQX',
  'ZQX\\',
];

/** A review in which every foreign text is this one. */
export function hostileReview(text: string): ToolReview {
  const artifact = aReviewedArtifact({
    name: text,
    description: text,
    inputSchema: JSON.stringify({ type: 'object', description: text }),
    outputSchema: text,
    implementation: { mode: 'Sandbox', source: `// ${text}\nfunction execute() { return ${JSON.stringify(text)}; }` },
    tests: [
      { input: JSON.stringify(text), expectedOutput: text, fixtures: [{ tool: text, input: text, output: text }] },
    ],
    requires: { apis: [text as 'fetch'], domains: [text], paths: [text] },
    limits: { duration: text, memory: text },
  });
  const composed = aReviewedArtifact({
    implementation: { mode: 'Compose', steps: [{ name: text, tool: text, inputMapping: text, condition: text }] },
  });
  return {
    namespace: text,
    object: text,
    artifact,
    digest: text,
    contributors: [text],
    promotion: {
      from: 'Agent',
      nonce: text,
      approvedBy: text,
      request: text,
      summary: text,
      risk: text,
      revoked: { by: text, reason: text },
    },
    replaces: { artifact: composed, digest: text },
    verification: {
      tests: { passed: 0, failed: 1, problems: [text] },
      generated: [{ name: text, passed: false, detail: text }],
    },
    uses: {
      total: 1,
      succeeded: 1,
      reported: 1,
      distinctInputs: 1,
      rootMessages: 1,
      agents: [text],
      usedBy: [{ name: text, uses: 1, succeeded: 1, sessions: 1, rootMessages: 1 }],
    },
    verdicts: [{ question: 'safety', model: text, approved: true, confidence: 2, reasoning: text, citedLines: [1] }],
    questions: [{ topic: text, reason: text, cases: [{ input: text, expected: text, got: text }] }],
    judged: text,
    authorModel: text,
    provenance: [{ time: text, action: text, actor: text, record: text }],
    auditHead: { sequence: 1, records: 1, digest: text, time: text, key: text, signature: text },
    requestHead: { sequence: 1, records: 1, digest: text, time: text, recordedAt: text, key: text, signature: 's' },
  };
}
