import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { namesGitRemote } from './git-remotes.ts';

describe('remotes of Git in arguments', () => {
  const named = (texts: readonly string[]): string[] => texts.filter((text) => namesGitRemote(text));

  it('each form that Git connects to is a remote', () => {
    const remotes = [
      'https://example.com/r.git',
      'ssh://h/r',
      'git@evil.example:x.git',
      'git@host:x',
      'evil.example:x.git',
      'EVIL.Example:x',
      ' evil.example:x',
      'evil.example.:x',
      'xn--bcher-kva.example:x',
      'bücher.example:x',
      'a_b.example:/srv/x.git',
      'evil.example: x',
      'evil.example::x',
      '[evil.example]:x',
      '[evil.example:22]:x',
      '[2001:db8::1]:x',
      '93.184.216.34:x.git',
      '134744072:x',
      '0x08080808:x',
      '8.2056:x',
      'ext::sh -c id',
      'fd::3,4',
      'remote-x.y+z::address',
      '0helper::a',
      '//evil.example/share/x.git',
      '//host/x',
      '\\\\host\\x',
      '--remote=evil.example:x.git',
      'remote.o.url=ext::sh -c id',
      'remote.o.url=evil.example:=x',
      'url.evil.example:x.insteadOf=origin',
      '--repo=//host/x',
    ];
    assert.deepEqual(named(remotes), remotes);
  });

  it('a command line of Git is read word by word, without the quotes of a shell', () => {
    const lines = [
      'git fetch evil.example:x.git',
      'cd x && /usr/bin/git fetch ext::id',
      "git fetch 'evil'.example:x",
      'git fetch evil\\.example:x',
      'git.exe fetch \\\\host\\x',
      'fetch evil.example:x.git',
      'clone //host/x',
      '-c remote.o.url=evil.example:x fetch o',
    ];
    assert.deepEqual(named(lines), lines);
  });

  it('revisions, paths, refspecs and sentences are no remotes', () => {
    const local = [
      'origin',
      'HEAD',
      'HEAD:path',
      'HEAD:src/a.b',
      'HEAD~2:README.md',
      'HEAD^{tree}:a',
      'main:src/x.ts',
      'v1.2.3:README.md',
      'v1.2.3-rc1:README.md',
      'v1.2.3-beta.1:README.md',
      '0.9.1:README.md',
      '1347440:README.md',
      'deadbee:README.md',
      'refs/tags/1.2.3:README.md',
      'refs/heads/release-1.x:README.md',
      'feature/a.b:file',
      'main..feature.x',
      'main..dev:a',
      'stash@{0}',
      'HEAD@{1}',
      '@',
      '@{upstream}',
      '@a:b',
      ':0:path',
      ':/fix a.b:c',
      ':(glob)**/*.ts',
      ':!a.b:c',
      'a:b',
      '+main:main',
      '+refs/heads/*:refs/remotes/origin/*',
      ':old',
      'C:\\work\\a.b',
      'C:/work/a.b',
      './file.ts:12',
      'src/file.ts:12',
      '/srv/a.b:c',
      '../a.b:c',
      'file.ts',
      'file.ts:',
      '10,20:file.ts',
      '--pretty=format:%h %an: %s',
      '--since=2026-01-01T10:00:00',
      '// a comment: of a.b',
      'fix(parser.ts): handle a::b at lexer.ts:12',
      '[ABC-123]: fix parser.ts:12',
      'Merge std::vec, see parser.ts:12',
      'git show HEAD:src/a.b',
      'git log -- src/a.b',
      '',
    ];
    assert.deepEqual(named(local), []);
  });
});
