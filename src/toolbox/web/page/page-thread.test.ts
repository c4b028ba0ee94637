import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../../test/support/stubs.ts';
import type { ErrorCode } from '../../../lib/error-codes.ts';
import { isTemperError } from '../../../lib/errors.ts';
import { contentOf } from './content.ts';
import type { ResponseBody } from './extract-page.ts';
import { pageThreads } from './page-thread.ts';
import { startPageThread } from './program.ts';

const op = { signal: NEVER_ABORTED };
const read = pageThreads({ startThread: startPageThread });

function body(bytes: Uint8Array | string, type: string): ResponseBody {
  const content = contentOf(type);
  return { bytes: Buffer.from(bytes), content, url: 'https://example.com/', format: 'markdown' };
}

async function failsWith(code: ErrorCode, work: Promise<unknown>, words: RegExp): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(isTemperError(error, code), String(error));
    assert.match(error.message, words);
    return true;
  });
}

describe('the thread that reads a page', () => {
  it('a thread reads each encoding that the response, the page or its first bytes name', async () => {
    const page = '<title>Ä</title><p>Grüße, 5 €</p>';
    const utf16 = Buffer.from(`\ufeff${page}`, 'utf16le');
    const windows1252 = Buffer.from(page.replace('€', '\u0080'), 'latin1');
    const named = (charset: string): Buffer => Buffer.concat([Buffer.from(`<meta charset="${charset}">`), windows1252]);
    for (const [bytes, type] of [
      [Buffer.from(page), 'text/html'],
      [Buffer.from(page), 'text/html; charset="UTF-8"'],
      [Buffer.from(`\ufeff${page}`), 'text/html; charset=iso-8859-1'],
      [utf16, 'text/html'],
      [utf16.subarray(2), 'text/html; charset=utf-16le'],
      [Buffer.from(utf16).swap16(), 'text/html; charset=utf-8'],
      [windows1252, 'text/html; charset=ISO-8859-1'],
      [windows1252, 'text/html; charset=windows-1252'],
      [windows1252, 'text/html'],
      [named('latin1'), 'text/html'],
    ] as const) {
      const { title, text } = await read(body(bytes, type), op);
      assert.deepEqual([title, text], ['Ä', 'Grüße, 5 €'], type);
    }
    await failsWith('TEMPER_WEB_CONTENT_UNSUPPORTED', read(body('x', 'text/plain; charset=klingon'), op), /klingon/);
  });

  it('a thread returns text, JSON and XML as they are, without invisible characters', async () => {
    const text = '{"a":\u200b "<p>b</p>"}\r\n\u202ex\0';
    for (const type of [
      'text/plain',
      'application/json',
      'application/ld+json',
      'text/xml',
      'application/atom+xml',
      'text/markdown',
    ]) {
      assert.deepEqual(await read(body(text, type), op), {
        title: '',
        text: '{"a": "<p>b</p>"}\nx',
        links: [],
        isComplete: true,
      });
    }
  });

  it('a thread beyond its memory ends, and the next page is read', async () => {
    const small = pageThreads({ startThread: startPageThread, maxHeapMegabytes: 12 });
    // Each attribute has a name of its own.
    const attributes = Array.from({ length: 300_000 }, (_, index) => `a${index}=1`).join(' ');
    await failsWith(
      'TEMPER_WEB_CONTENT_UNSUPPORTED',
      small(body(`<p ${attributes}>`, 'text/html'), op),
      /memory|parsed/,
    );
    assert.equal((await small(body('<p>next</p>', 'text/html'), op)).text, 'next');
  });

  it('a thread that takes too long or whose call ends is ended', async () => {
    const impatient = pageThreads({ startThread: startPageThread, timeoutMs: 1 });
    await failsWith('TEMPER_WEB_CONTENT_UNSUPPORTED', impatient(body('<p>', 'text/html'), op), /too long/);
    const ended = new AbortController();
    const reading = read(body('<p>', 'text/html'), { signal: ended.signal });
    ended.abort();
    await failsWith('TEMPER_CANCELLED', reading, /ended/);
  });
});

describe('contentOf', () => {
  it('contentOf refuses what is not text and names it', () => {
    for (const [type, words] of [
      ['application/pdf', /a PDF document, application\/pdf/],
      ['image/png', /an image, image\/png/],
      ['video/mp4', /a video/],
      ['application/zip', /an archive/],
      ['application/octet-stream', /is application\/octet-stream/],
      ['', /content without a type/],
      ['application/evil\u202e', /application\/evil\\u\{202e\}/],
    ] as const) {
      assert.throws(
        () => contentOf(type),
        (error) => isTemperError(error, 'TEMPER_WEB_CONTENT_UNSUPPORTED') && words.test(error.message),
        type,
      );
    }
  });
});
