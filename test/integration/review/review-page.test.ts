import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { HOSTILE, hostileReview, MARKER } from '../../../src/review/hostile-reviews.testing.ts';
import { reviewDocument } from '../../../src/review/review-document.ts';
import { aReview } from '../../../src/review/reviews.testing.ts';
import { renderHtml } from '../../../src/review/render/html.ts';
import type { ToolReview } from '../../../src/review/tool-review.ts';
import { BrowserPage } from '../../support/browser.ts';

const WIDTH = 1_000;
const PNG = '89504e470d0a1a0a';
/** In the page: the text outside of boxes, and the elements by name. */
const OUTSIDE = `(() => {
  const copy = document.body.cloneNode(true);
  for (const box of copy.querySelectorAll('code')) box.remove();
  return copy.textContent;
})()`;
const ELEMENTS = `[...new Set([...document.querySelectorAll('*')].map(({ localName }) => localName))].sort()`;
const VISIBLE = `document.body.innerText`;
/** Boxes scroll by themselves, and the page does not. */
const OVERFLOW = `document.documentElement.scrollWidth - document.documentElement.clientWidth`;

describe('the review page in a browser', () => {
  let folder: string;
  let page: BrowserPage;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-review-page-'));
    page = await BrowserPage.open({ width: WIDTH, height: 800 });
  });
  after(async () => {
    await page?.[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  async function open(review: ToolReview, name: string): Promise<string> {
    const file = join(folder, `${name}.html`);
    await writeFile(file, renderHtml(reviewDocument(review), review.object));
    page.requests.length = 0;
    page.logged.length = 0;
    const { href } = pathToFileURL(file);
    await page.navigate(href);
    return href;
  }

  it('a reviewer sees every section of a review, in the style of the page', async () => {
    const href = await open(aReview(), 'review');
    const text = String(await page.evaluate(VISIBLE));
    const headings = (await page.evaluate(
      `[...document.querySelectorAll('h1, h2')].map(({ innerText }) => innerText)`,
    )) as string[];
    assert.ok(headings.length > 5, headings.join(', '));
    for (const heading of [...headings, 'The tool as judges read it', 'Source'])
      assert.ok(text.includes(heading), heading);
    assert.notEqual(await page.evaluate(`getComputedStyle(document.querySelector('main')).maxWidth`), 'none');
    assert.ok(Number(await page.evaluate(OVERFLOW)) <= 0);
    assert.deepEqual([page.requests, page.logged], [[href], []]);
    assert.equal((await page.screenshot()).subarray(0, 8).toString('hex'), PNG);
  });

  it('hostile text stays in its boxes: it makes no element, runs no script and sends no request', async () => {
    await open(aReview(), 'own');
    const own = new Set((await page.evaluate(ELEMENTS)) as string[]);
    for (const [index, text] of HOSTILE.entries()) {
      const href = await open(hostileReview(text), `hostile-${index}`);
      assert.ok(String(await page.evaluate('document.body.textContent')).includes(MARKER));
      assert.ok(!String(await page.evaluate(OUTSIDE)).includes(MARKER), text);
      const elements = (await page.evaluate(ELEMENTS)) as string[];
      assert.deepEqual(
        elements.filter((name) => !own.has(name)),
        [],
      );
      assert.deepEqual([page.requests, page.logged], [[href], []]);
      assert.ok(Number(await page.evaluate(OVERFLOW)) <= 0, `the page is wider than the window: ${text.slice(0, 40)}`);
    }
  });

  it('the policy of the page refuses what a mistake of ours would let in', async () => {
    const html = renderHtml(reviewDocument(aReview()), 'injected');
    const file = join(folder, 'injected.html');
    const injected = '<script>document.title = "taken over"</script><img src="https://host.example/a.png">';
    await writeFile(file, html.replace('<main>', `<main>${injected}<style>main { display: none }</style>`));
    page.requests.length = 0;
    page.logged.length = 0;
    await page.navigate(pathToFileURL(file).href);
    assert.equal(await page.evaluate('document.title'), 'injected');
    assert.notEqual(await page.evaluate(`getComputedStyle(document.querySelector('main')).display`), 'none');
    assert.ok(page.logged.length >= 3, page.logged.join('\n'));
    assert.ok(
      page.logged.every((text) => text.includes('Content Security Policy')),
      page.logged.join('\n'),
    );
  });
});
