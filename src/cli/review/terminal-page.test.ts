import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { HOSTILE, hostileReview, MARKER } from '../../review/hostile-reviews.testing.ts';
import { reviewDocument } from '../../review/review-document.ts';
import { aReview, aReviewedArtifact } from '../../review/reviews.testing.ts';
import { changeSections } from '../../review/sections/changes.ts';
import type { ReviewDocument } from '../../review/page/document.ts';
import { aTerminal } from '../io.testing.ts';
import { displayWidth } from '../display-width.ts';
import { terminalText } from './terminal-page.ts';

/** The expected output. `UPDATE_GOLDEN=1 node --test` writes it again; review the difference. */
const GOLDEN = resolve(import.meta.dirname, '../../../test/fixtures/review-terminal');
const OPTIONS = { maxBoxLines: 1_000, more: 'another command has them' };

function shown(document: ReviewDocument, columns: number | undefined, colour = false, options = OPTIONS): string {
  const terminal = columns === undefined ? {} : { terminal: true, columns: () => columns };
  return terminalText(document, options, { ...aTerminal(), colour, ...terminal });
}

/** A source of lines of other scripts, wide characters and more columns than any terminal. */
const WIDE = aReviewedArtifact({
  name: 'revenue_by_region',
  implementation: {
    mode: 'Sandbox',
    source: `// 地域別売上高集計 שלום مرحبا\nfunction execute(input) {\n  return ${JSON.stringify('地域'.repeat(60))};\n}\n`,
  },
});

describe('the review page on a terminal', () => {
  for (const columns of [40, 80, 200, undefined]) {
    const name = String(columns ?? 'pipe');
    for (const colour of columns === 80 ? [false, true] : [false]) {
      it(`${name} columns${colour ? ' with colours' : ''}: the page is as reviewed`, async () => {
        const file = join(GOLDEN, `${name}${colour ? '-colour' : ''}.txt`);
        const text =
          shown(reviewDocument(aReview()), columns, colour) +
          shown(changeSections(aReview({ artifact: WIDE })), columns, colour);
        if (process.env['UPDATE_GOLDEN'] === '1') {
          await mkdir(GOLDEN, { recursive: true });
          await writeFile(file, text);
        }
        assert.equal(text, await readFile(file, 'utf8'));
      });
    }
  }

  for (const columns of [20, 33, 40, 80, 200]) {
    it(`${columns} columns: no line is wider, and colours change no text`, () => {
      const hostile = columns === 33 ? HOSTILE.map(hostileReview) : [];
      for (const review of [aReview(), aReview({ artifact: WIDE }), ...hostile]) {
        const plain = shown(reviewDocument(review), columns);
        for (const line of plain.split('\n'))
          assert.ok(displayWidth(line) <= columns, `${displayWidth(line)}: ${line}`);
        assert.equal(stripVTControlCharacters(shown(reviewDocument(review), columns, true)), plain);
      }
    });
  }

  it('no hostile text leaves its marks and boxes, and none controls or reorders the terminal', () => {
    for (const columns of [40, undefined]) {
      for (const text of HOSTILE) {
        const page = shown(reviewDocument(hostileReview(`${text} ›‹ \u05d0`)), columns);
        assert.ok(page.includes(MARKER));
        assert.doesNotMatch(page, /[^\P{Cc}\n]|[\u200b-\u200f\u202a-\u202e\u2066-\u2069\u0590-\u08ff]/u);
        assert.ok(!outsideBoxes(page).includes(MARKER), outsideBoxes(page));
      }
    }
  });

  it('ten thousand lines and one line of a megabyte stay within the lines of a box, which says how many are left out', () => {
    const lines = Array.from({ length: 10_000 }, (_, index) => `x${index}`).join('\n');
    const long = `const text = "${'\u001b[2J'.repeat(200_000)}";`;
    for (const source of [lines, long]) {
      const artifact = aReviewedArtifact({ implementation: { mode: 'Sandbox', source } });
      const text = shown(changeSections(aReview({ artifact })), 80, true, { ...OPTIONS, maxBoxLines: 120 });
      assert.ok(text.split('\n').length < 420, `${text.split('\n').length} lines`);
      assert.match(text, /\d{4,} further lines are left out; another command has them/);
    }
  });

  it('a difference is coloured by its signs, and has none without colours', () => {
    const document = changeSections(aReview());
    // oxlint-disable-next-line no-control-regex -- colour sequences start with ESC
    const coloured = /\u001b\[32m *\+\u001b\[39m .*\u001b\[32m .*totals/;
    assert.match(shown(document, 80, true), coloured);
    assert.ok(!shown(document, 80).includes('\u001b'));
  });
});

/** The page without the rows of boxes and without what stands between the marks of foreign text. */
function outsideBoxes(page: string): string {
  const rows = page.split('\n').filter((line) => !/^ *(?:\d+|[-+@⋯↳]|) [│>](?: |$)/.test(line));
  return rows.join(' ').replaceAll(/‹[^‹›]*›/g, '');
}
