import { relative } from 'node:path';
import { takeViolations, writeSeenResponses } from './watch-traffic';
import { workspaceFile } from './documents';

/** Jest's setup of integration tests: no response of a watched service may differ from its API document. */
function expectNoViolations(): void {
  const found = takeViolations();
  if (found.length > 0)
    throw new Error(`responses that the API document does not allow:\n  ${found.join('\n  ')}`);
}

afterEach(expectNoViolations);

afterAll(() => {
  const { testPath } = expect.getState();
  writeSeenResponses(relative(workspaceFile(), testPath ?? 'unknown'));
  expectNoViolations();
});
