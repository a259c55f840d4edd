import { relative } from 'node:path';
import { takeViolations, writeSeenAnswers } from './watch-traffic';
import { workspaceFile } from './workspace-file';

/** Jest's setup of integration tests: no answer of a watched service may differ from what its API document says. */
function expectNoViolations(): void {
  const found = takeViolations();
  if (found.length > 0)
    throw new Error(`answers that the API document does not allow:\n  ${found.join('\n  ')}`);
}

afterEach(expectNoViolations);

afterAll(() => {
  const { testPath } = expect.getState();
  writeSeenAnswers(relative(workspaceFile(), testPath ?? 'unknown'));
  expectNoViolations();
});
