import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { array, assert as check, constantFrom, oneof, property, string } from 'fast-check';
import { isInvisible } from '../../../lib/text/invisible.ts';
import { readHtml } from './read-html.ts';

const URL_OF_PAGE = new URL('https://example.com/docs/');
const markdown = (html: string): string => readHtml(html, URL_OF_PAGE, 'markdown').text;

describe('readHtml', () => {
  it('readHtml keeps headings, lists, tables, quotes, code and links as Markdown', () => {
    const page = readHtml(
      `<!doctype html><html><head><title>Rates &amp; fees</title></head><body>
      <h2>Ra<b>tes</b></h2><p>See <a href="/a(b)">the [full] list</a>,
      or call <code>rate()</code>.<br>Second line</p>
      <ul><li>one<li>two<ol><li>a</li><li>b</li></ol></ul>
      <table><tr><th>From<th>To</tr><tr><td>EUR|x<td>USD</table>
      <pre>let a = 1;
  b()</pre><blockquote><p>quoted</p></blockquote><hr><p>end</p></body></html>`,
      URL_OF_PAGE,
      'markdown',
    );
    assert.deepEqual(page, {
      title: 'Rates & fees',
      text: [
        '## Rates',
        '',
        'See [the \\[full\\] list](https://example.com/a%28b%29), or call `rate()`.',
        'Second line',
        '- one',
        '- two',
        '  1. a',
        '  2. b',
        '',
        '| From | To |',
        '| --- | --- |',
        '| EUR\\|x | USD |',
        '',
        '```',
        'let a = 1;',
        '  b()',
        '```',
        '',
        '> quoted',
        '',
        '---',
        '',
        'end',
      ].join('\n'),
      links: [{ text: 'the [full] list', url: 'https://example.com/a(b)' }],
      isComplete: true,
    });
  });

  it('readHtml writes plain text without marks of Markdown', () => {
    const html = '<h1>Title</h1><p>A <a href="/x">link</a> and <code>code</code></p><table><tr><td>1<td>2</table>';
    assert.equal(readHtml(html, URL_OF_PAGE, 'text').text, 'Title\n\nA link and code\n\n1\t2');
  });

  it('readHtml reads the part of the page that its author marks as the content', () => {
    const around = '<nav>Home</nav><header>Banner</header><aside>Advertisement</aside><footer>Imprint</footer>';
    const long = 'Words. '.repeat(60).trim();
    assert.equal(markdown(`${around}<main><header>Intro</header><p>${long}</p></main>`), `Intro\n\n${long}`);
    assert.equal(markdown(`${around}<div>Teaser</div><article>${long}</article>`), long);
    assert.equal(markdown(`${around}<p>${long}</p>`), long);
    // Too little is marked.
    assert.equal(markdown(`<nav>Home</nav><main>x</main><p>${long}</p>`), `x\n\n${long}`);
    assert.equal(markdown('<nav>Home and nothing else</nav>'), 'Home and nothing else');
  });

  it('readHtml leaves out what no reader sees', () => {
    for (const hidden of [
      '<script>SECRET</script>',
      '<style>SECRET</style>',
      '<!-- SECRET -->',
      '<template><p>SECRET</p></template>',
      '<noscript>SECRET</noscript>',
      '<p hidden>SECRET</p>',
      '<div aria-hidden="true"><p>SECRET</p></div>',
      '<p style="display:none">SECRET</p>',
      '<p style="DISPLAY : None !important">SECRET</p>',
      '<p style="color:red; visibility:hidden">SECRET</p>',
      '<p style="opacity:0">SECRET</p>',
      '<p style="font-size:0px">SECRET</p>',
      '<p style="position:absolute;left:-9999px">SECRET</p>',
      '<p style="color:transparent">SECRET</p>',
      '<p style="height:0;overflow:hidden">SECRET</p>',
      '<p style="text-indent:-9999px">SECRET</p>',
      '<p style="clip-path: inset(50%)">SECRET</p>',
      '<p style="clip: rect(0,0,0,0)">SECRET</p>',
      '<dialog>SECRET</dialog>',
      '<img alt="SECRET" src="x">',
      '<svg><text>SECRET</text><title>SECRET</title></svg>',
      '<object>SECRET</object><iframe srcdoc="SECRET">SECRET</iframe>',
      '<select><option>SECRET</option></select><textarea>SECRET</textarea><button>SECRET</button>',
      '<input value="SECRET"><meta name="description" content="SECRET"><meta http-equiv="refresh" content="0;url=https://SECRET.test">',
      '<p title="SECRET" data-x="SECRET"></p>',
      '<video>SECRET</video><audio>SECRET</audio><canvas>SECRET</canvas>',
    ]) {
      const page = readHtml(`<p>before</p>${hidden}<p>after</p>`, URL_OF_PAGE, 'markdown');
      assert.equal(page.text, 'before\n\nafter', hidden);
      assert.deepEqual(page.links, [], hidden);
    }
  });

  it('readHtml keeps the text of links that lead nowhere or into the page, without their address', () => {
    for (const href of [
      'javascript:alert(1)',
      'data:text/html,SECRET',
      'vbscript:x',
      'mailto:a@example.com',
      '#part',
      'https://user:pass@example.com/',
      'http://',
      `https://example.com/${'a'.repeat(3_000)}`,
      'java\nscript:alert(1)',
    ]) {
      const page = readHtml(`<a href="${href}">text</a>`, URL_OF_PAGE, 'markdown');
      assert.deepEqual([page.text, page.links], ['text', []], href);
    }
  });

  it('readHtml takes the address of links from the base element of the page', () => {
    const html = '<base href="https://other.example.com/x/"><base href="https://third.example.com/"><a href="y">z</a>';
    assert.equal(markdown(html), '[z](https://other.example.com/x/y)');
  });

  it('readHtml reads pages whose layout is a table', () => {
    const html = '<table><tr><td>Left <table><tr><td>k</td><td>v</td></tr></table> after</td></tr></table>';
    assert.equal(markdown(html), 'Left\n\n| k | v |\n| --- | --- |\n\nafter');
  });

  it('readHtml ends code and inline code only where the page does', () => {
    assert.equal(markdown('<p><code>a`b</code></p>'), '`` a`b ``');
    assert.equal(markdown('<pre>```\nfree text</pre>'), '````\n```\nfree text\n````');
  });

  it('readHtml reads broken and hostile pages within its limits', () => {
    const of = (text: string, count: number): string => text.repeat(count);
    for (const [name, html] of Object.entries({
      'deep elements': of('<div>', 40_000),
      'open links and wrong ends': of('<a href=x>', 12_000) + of('</b>', 12_000),
      'many attributes': `<p ${of('a=1 ', 40_000)}>`,
      'white space': of('<i> </i>', 12_000),
      'open angle brackets': of('<', 1_000_000),
      'open comments': of('<!--', 60_000),
      'tables in tables': of('<table><tr><td>', 390),
      rows: `<table>${of('<tr><td>a<td>b', 12_000)}`,
      'code in code': of('<code>', 390) + of('a ', 60_000),
      'open character references': of('&', 1_000_000),
      backticks: `<pre>${of('` ', 60_000)}`,
      'line breaks': of('<br>', 40_000),
      quotations: of('<blockquote>', 300) + of('<p>a</p>', 6_000),
    })) {
      const { text } = readHtml(html, URL_OF_PAGE, 'markdown');
      assert.ok(text.length < 5_000_000, name);
    }
    assert.equal(readHtml(of('<div>', 1_000), URL_OF_PAGE, 'markdown').isComplete, false);
    assert.equal(readHtml(of('<p>a', 200_000), URL_OF_PAGE, 'markdown').isComplete, false);
  });

  it('readHtml returns no invisible character, and never throws', () => {
    const part = constantFrom(
      '<p>',
      '</p>',
      '<a href="/x">',
      '<table>',
      '<td>',
      '<li>',
      '<pre>',
      '<h1>',
      '</div>',
      '<!--',
      '\u200b',
      '\u202e',
      '\u{e0041}',
      '\0',
      '&#8203;',
      '&#x202e;',
      '&shy;',
    );
    check(
      property(array(oneof(part, string({ unit: 'binary' }))), (parts) => {
        const { text, title } = readHtml(parts.join(''), URL_OF_PAGE, 'markdown');
        const found = Array.from(text + title).filter(
          (character) => !/[\n\t]/.test(character) && isInvisible(character),
        );
        assert.deepEqual(found, []);
      }),
    );
  });
});
