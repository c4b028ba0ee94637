import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { MAX_COLUMNS } from './page/code-lines.ts';
import { reviewDocument } from './review-document.ts';
import { HOSTILE, hostileReview, MARKER } from './hostile-reviews.testing.ts';
import { aReview, aReviewedArtifact } from './reviews.testing.ts';
import { renderHtml } from './render/html.ts';
import { renderMarkdown } from './render/markdown.ts';
import type { ToolReview } from './tool-review.ts';

const FIXTURES = join(import.meta.dirname, '../../test/fixtures/review');
/** What is neither in a fenced block nor in a code span, by the rules of CommonMark. */
function outsideMarkdownBoxes(page: string): string {
  const outside: string[] = [];
  let fence: string | undefined;
  for (const line of page.split('\n')) {
    const run = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (fence === undefined && run !== undefined && !line.slice(line.indexOf(run) + run.length).includes('`'))
      fence = run;
    else if (fence === undefined) outside.push(withoutCodeSpans(line));
    else if (run !== undefined && run[0] === fence[0] && run.length >= fence.length && line.trim() === run)
      fence = undefined;
  }
  assert.equal(fence, undefined, 'every fenced block is closed');
  return outside.join('\n');
}

function withoutCodeSpans(line: string): string {
  let rest = line;
  let outside = '';
  for (let run = /(?<!\\)`+/.exec(rest); run !== null; run = /(?<!\\)`+/.exec(rest)) {
    const start = run.index + run[0].length;
    const end = new RegExp(`(?<!\`)${run[0]}(?!\`)`).exec(rest.slice(start));
    outside += rest.slice(0, run.index);
    if (end === null) return `${outside}${rest.slice(run.index)}`;
    rest = rest.slice(start + end.index + run[0].length);
  }
  return outside + rest;
}

/** Text of the page that is not in a `code` element. */
function outsideHtmlBoxes(page: string): string {
  return page.replaceAll(/<code[^>]*>(?:[^<]|<span class="[a-z]+">[^<]*<\/span>)*<\/code>/g, '');
}

function pagesOf(review: ToolReview): { markdown: string; html: string } {
  const document = reviewDocument(review);
  return { markdown: renderMarkdown(document), html: renderHtml(document, review.object) };
}

function tagsOf(html: string): string[] {
  return [...html.matchAll(/<\/?[a-z0-9!]+/gi)].map(([tag]) => tag);
}

describe('the review page', () => {
  for (const form of ['markdown', 'html'] as const) {
    it(`the ${form} page of a review has the recorded bytes`, async () => {
      const file = join(FIXTURES, form === 'markdown' ? 'review.md' : 'review.html');
      const page = pagesOf(aReview())[form];
      const { TEMPER_RECORD } = process.env;
      if (TEMPER_RECORD === '1') await writeFile(file, page);
      assert.equal(page, await readFile(file, 'utf8'));
    });
  }

  it('no hostile text leaves its boxes in the Markdown page', () => {
    for (const text of HOSTILE) {
      const { markdown } = pagesOf(hostileReview(text));
      assert.ok(markdown.includes(MARKER), 'the page contains the text');
      assert.ok(!outsideMarkdownBoxes(markdown).includes(MARKER), outsideMarkdownBoxes(markdown));
    }
  });

  it('no hostile text leaves its boxes in the HTML page, and the page contains only elements of its own', () => {
    const own = new Set(tagsOf(pagesOf(aReview()).html));
    for (const text of HOSTILE) {
      const { html } = pagesOf(hostileReview(text));
      const body = html.slice(html.indexOf('<main>'));
      assert.ok(body.includes(MARKER));
      assert.ok(!outsideHtmlBoxes(body).includes(MARKER), outsideHtmlBoxes(body));
      const tags = tagsOf(html);
      assert.deepEqual(
        tags.filter((tag) => !own.has(tag)),
        [],
      );
    }
  });

  it('characters that are not drawn, or that change the direction of text, are escapes in both pages', () => {
    for (const page of Object.values(pagesOf(hostileReview(HOSTILE[5] ?? '')))) {
      const hidden = Array.from('\u202e\u2066\u200b\u00ad\u{e0041}\u2028\u0085\0\u001b\u3164\ufe0f');
      assert.deepEqual(
        hidden.filter((character) => page.includes(character)),
        [],
      );
      assert.match(page, /\\u\{202e\}/);
    }
    const { markdown } = pagesOf(hostileReview(HOSTILE[6] ?? ''));
    assert.doesNotMatch(markdown, /\u0336{4}/);
  });

  it('the HTML page permits no script, no request and no style but its own', () => {
    const { html } = pagesOf(aReview());
    assert.match(html, /default-src &#39;none&#39;; style-src &#39;sha256-[A-Za-z0-9+/=]+&#39;/);
    assert.doesNotMatch(html, /<script|<img|<link|<iframe|href=|src=|url\(| on[a-z]+=/i);
  });

  it('code beyond the right edge or below many blank lines is shown', () => {
    const source = `function execute() {${' '.repeat(900)}steal();\n${'\n'.repeat(5_000)}steal();\n}`;
    const artifact = aReviewedArtifact({ implementation: { mode: 'Sandbox', source } });
    const { markdown } = pagesOf(aReview({ artifact }));
    const lines = markdown
      .slice(markdown.indexOf('## Source'), markdown.indexOf('## The tool as judges read it'))
      .split('\n');
    assert.ok(lines.length < 30, `${lines.length} lines`);
    assert.ok(lines.every((line) => line.length < MAX_COLUMNS + 20));
    assert.equal(lines.filter((line) => line.includes('steal')).length, 2);
    assert.match(markdown, /⋯ \(5000 blank lines, 2 to 5001\)/);
  });

  it('JSON text whose indented form would leave a member out is shown as it is', () => {
    const inputSchema = '{"type":"object","description":"first","description":"second"}';
    const { markdown } = pagesOf(aReview({ artifact: aReviewedArtifact({ inputSchema }) }));
    assert.ok(markdown.includes(inputSchema));
    assert.match(markdown, /not in the canonical form of JSON/);
  });

  it('a source that does not parse is shown without colours', () => {
    const source = `function execute( { ${'['.repeat(20_000)}`;
    const { html } = pagesOf(aReview({ artifact: aReviewedArtifact({ implementation: { mode: 'Sandbox', source } }) }));
    assert.match(html, /function execute\( \{/);
  });

  it('the page warns of what a reviewer must not miss', () => {
    const { verification: _, uses: __, ...bare } = aReview();
    const refused = { model: 'm', approved: false, confidence: 1, reasoning: 'no', judgeIsAuthor: true };
    const uses = { total: 2, succeeded: 2, reported: 2, distinctInputs: 1, rootMessages: 1, agents: ['a'] };
    const { markdown } = pagesOf({ ...bare, uses, verdicts: [refused], tainted: true });
    for (const expected of [
      'contained untrusted content',
      'No verification is recorded',
      '1 of 1 verdicts refuse',
      'wrote the tool also judged it',
      'only a claim of an agent',
    ]) {
      assert.match(markdown, new RegExp(`> \\*\\*Attention:\\*\\* .*${expected}`));
    }
    const requires = { apis: ['fetch' as const], domains: ['api.example.com'], paths: [] };
    const asking = pagesOf(aReview({ artifact: aReviewedArtifact({ requires }) })).markdown;
    assert.match(asking, /Attention:\*\* New host functions: ` fetch `/);
    assert.match(asking, /Attention:\*\* New hosts: ` api\.example\.com `/);
  });
});
