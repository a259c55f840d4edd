import { relative } from 'node:path';
import { faultsArePermitted, forbidFaults, takeViolations, writeSeenResponses } from './watch-traffic';
import { takeLoggedDefects } from '../watch-log';
import { workspaceFile } from './documents';

/**
 * Jest setup file of integration tests. Fails a test if a response of a watched service differs from its API
 * document, or if a service logs a defect.
 */
function failOnViolations(): void {
  const defects = takeLoggedDefects();
  const found = [
    ...takeViolations(),
    ...(faultsArePermitted() ? [] : defects.map((line) => `a defect in the log: ${line}`)),
  ];
  forbidFaults();
  if (found.length > 0) throw new Error(`a service misbehaved:\n  ${found.join('\n  ')}`);
}

afterEach(failOnViolations);

// eslint-disable-next-line no-restricted-syntax -- this checks what the services logged
afterAll(() => {
  const { testPath } = expect.getState();
  writeSeenResponses(relative(workspaceFile(), testPath ?? 'unknown'));
  failOnViolations();
});
