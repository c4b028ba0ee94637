const BRANCH = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,254}$/;
const MISREAD = /\.\.|\/\/|\/\.|\.lock(?:\/|$)|[/.]$/;

/** Whether Git, a server and a shell read the text as the same branch. */
export function isSafeBranchName(text: string): boolean {
  return BRANCH.test(text) && !MISREAD.test(text);
}
