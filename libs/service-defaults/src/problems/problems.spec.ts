import { HttpException, NotFoundException } from '@nestjs/common';
import { ProblemException, problems } from '../index';
import { httpProblem, renderProblem } from './problem';

describe('problems', () => {
  it('carry status and detail as an HttpException does', () => {
    const problem = problems.notFound('There is no such setting.', 'https://example.org/setting-missing');
    expect(problem).toBeInstanceOf(HttpException);
    expect([problem.getStatus(), problem.message]).toEqual([404, 'There is no such setting.']);
  });

  it('carry the bearer challenge and Retry-After', () => {
    expect(problems.unauthorized().problem.headers).toEqual({ 'WWW-Authenticate': 'Bearer' });
    expect(problems.serviceUnavailable('Later.', 7).problem.headers).toEqual({ 'Retry-After': '7' });
  });

  it('do not reveal their cause', () => {
    const problem = new ProblemException({ status: 502, cause: new Error('internal') });
    expect(problem.cause).toBeInstanceOf(Error);
    expect(renderProblem(problem.problem, '/a', 't')).not.toContain('internal');
  });
});

describe('httpProblem', () => {
  it("keeps the app's text below 500 and drops it from 500 on", () => {
    expect(httpProblem(new NotFoundException('No such task.'))).toEqual({
      status: 404,
      detail: 'No such task.',
    });
    expect(httpProblem(new HttpException('select * from user', 502))).toEqual({ status: 502 });
  });

  it('returns null for any other error', () => {
    expect(httpProblem(new Error('x'))).toBeNull();
    expect(httpProblem(null)).toBeNull();
    expect(httpProblem({ statusCode: 500 })).toBeNull();
  });
});

describe('renderProblem', () => {
  it('writes the members of RFC 9457, and extensions that cannot replace them', () => {
    const extensions = { status: 200, code: 'no-schedule' };
    const text = renderProblem({ status: 422, extensions, errors: { a: ['b'] } }, '/x', 'trace');
    expect(JSON.parse(text)).toEqual({
      type: 'about:blank',
      title: 'Unprocessable Entity',
      status: 422,
      instance: '/x',
      traceId: 'trace',
      errors: { a: ['b'] },
      code: 'no-schedule',
    });
  });
});
