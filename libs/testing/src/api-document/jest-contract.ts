import { relative } from 'node:path';
import { faultsArePermitted, forbidFaults, takeViolations, writeSeenResponses } from './watch-traffic';
import { takeLoggedDefects } from '../watch-log';
import { workspaceFile } from './documents';

/**
 * Jest's setup of integration tests: no response of a watched service may differ from its API document, and
 * no service may log a defect.
 */
function expectNoViolations(): void {
  const defects = takeLoggedDefects();
  const found = [
    ...takeViolations(),
    ...(faultsArePermitted() ? [] : defects.map((line) => `a defect in the log: ${line}`)),
  ];
  forbidFaults();
  if (found.length > 0) throw new Error(`a service misbehaved:\n  ${found.join('\n  ')}`);
}

afterEach(expectNoViolations);

// eslint-disable-next-line no-restricted-syntax -- this is the look at what services logged
afterAll(() => {
  const { testPath } = expect.getState();
  writeSeenResponses(relative(workspaceFile(), testPath ?? 'unknown'));
  expectNoViolations();
});
