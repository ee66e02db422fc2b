import { expect, it } from 'vitest';
import { GraphBuilder, LEFT_OUT } from '../../../src/engine/onnx/graph.js';

const opsOf = (graph: GraphBuilder) => graph.build('test').nodes.map(({ op }) => op);

it('leaves out nodes whose results nothing reads, and those before them', () => {
  const graph = new GraphBuilder();
  const x = graph.input('x', 'f32', ['n']);
  const doubled = graph.op('Add', [x, x]);
  graph.op('Concat', [graph.op('Shape', [x]), graph.ints(1)]);
  graph.output(graph.op('Neg', [doubled]));
  expect(opsOf(graph)).toEqual(['Add', 'Neg']);
});

it('keeps a node that only one of several outputs or a declared output needs', () => {
  const graph = new GraphBuilder();
  const x = graph.input('x', 'f32', ['n']);
  const [, indices] = graph.pair('TopK', [x, graph.ints(2)]);
  graph.declareOutput(indices, { name: 'indices', type: 'i64', shape: ['n'] });
  expect(opsOf(graph)).toEqual(['TopK', 'Identity']);
});

it('keeps a node that only a body reads, also one in a body of a body', () => {
  const graph = new GraphBuilder();
  const x = graph.input('x', 'f32', ['n']);
  const outer = graph.op('Exp', [x]);
  const unread = graph.op('Log', [x]);
  expect(unread).not.toBe(outer);
  const inner = new GraphBuilder('inner/');
  const innermost = new GraphBuilder('innermost/');
  innermost.output(innermost.op('Identity', [outer]));
  const deepest = innermost.build('innermost');
  inner.op('Shape', [unread]);
  inner.output(inner.op('Loop', [graph.ints(1), LEFT_OUT], { attributes: { body: deepest } }));
  const body = inner.build('inner');
  graph.output(graph.op('Loop', [graph.ints(1), LEFT_OUT], { attributes: { body } }));
  expect(opsOf(graph)).toEqual(['Exp', 'Loop']);
});

it('keeps what is the output of a body itself', () => {
  const graph = new GraphBuilder();
  const outer = graph.op('Exp', [graph.input('x', 'f32', ['n'])]);
  const inner = new GraphBuilder('inner/');
  inner.output(outer);
  const body = inner.build('inner');
  graph.output(graph.op('Loop', [graph.ints(1), LEFT_OUT], { attributes: { body } }));
  expect(opsOf(graph)).toEqual(['Exp', 'Loop']);
});
