/** All small changes of a source file that a test should notice. */
import ts from 'typescript';

const { SyntaxKind } = ts;

const COMPARISONS = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
};
const ARITHMETIC = { '+': '-', '-': '+', '*': '/', '/': '*', '%': '*', '**': '*' };

/** Constants by the annotated result of a function. */
const CONSTANTS = { number: '0', bigint: '0n', boolean: 'false', string: "''", void: '' };

/**
 * The mutants of a file: `kind`, the range of `before` in the text, and `after`, which replaces it.
 * @param file Absolute path.
 */
export function mutantsOf(file, text) {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const mutants = [];
  const add = (kind, node, after) => {
    const [start, end] = [node.getStart(source), node.getEnd()];
    const line = source.getLineAndCharacterOfPosition(start).line + 1;
    mutants.push({ kind, file, line, start, end, before: text.slice(start, end), after });
  };
  const visit = (node, isTable) => {
    // Types do not run, and the texts of errors are not behaviour.
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isInterfaceDeclaration(node))
      return;
    if (ts.isNewExpression(node) && /Error$/.test(node.expression.getText(source))) return;
    addMutants(node, isTable, add, source);
    const isFunction = ts.isFunctionLike(node);
    const isData = ts.isObjectLiteralExpression(node) || ts.isArrayLiteralExpression(node);
    ts.forEachChild(node, (child) => visit(child, isFunction ? false : (isTable ?? isData)));
  };
  // Undefined outside of functions and tables, where a number is a constant.
  visit(source, undefined);
  return mutants;
}

/** @param isTable Whether the node is in data outside of functions, whose numbers come from a source. */
function addMutants(node, isTable, add, source) {
  if (ts.isNumericLiteral(node) && isTable !== true) {
    const value = Number(node.text.replaceAll('_', ''));
    for (const other of Number.isInteger(value) ? [value + 1, value - 1] : [value / 2, value * 2]) {
      add('number', node, other < 0 ? `(${other})` : String(other));
    }
  }
  if (ts.isBinaryExpression(node)) {
    const { operatorToken, left, right } = node;
    const operator = operatorToken.getText(source);
    const isText = [left, right].some(
      (side) => ts.isStringLiteralLike(side) || ts.isTemplateExpression(side),
    );
    if (operator in COMPARISONS) add('comparison', operatorToken, COMPARISONS[operator]);
    if (operator in ARITHMETIC && !isText) add('arithmetic', operatorToken, ARITHMETIC[operator]);
    if (operator === '&&' || operator === '||') {
      if (!isCondition(node)) return;
      add('condition', operatorToken, operator === '&&' ? '||' : '&&');
    }
  }
  if (ts.isIfStatement(node) || ts.isConditionalExpression(node)) {
    const condition = node.expression ?? node.condition;
    add('condition', condition, `!(${condition.getText(source)})`);
  }
  if (isTable !== true && node.kind === SyntaxKind.TrueKeyword) add('condition', node, 'false');
  if (isTable !== true && node.kind === SyntaxKind.FalseKeyword) add('condition', node, 'true');
  addConstantResult(node, add, source);
  if (isRemovable(node)) add('removal', node, ';');
}

/** Whether the value decides a branch. Elsewhere it can be a default. */
function isCondition({ parent }) {
  return (
    ts.isIfStatement(parent) || ts.isConditionalExpression(parent) || ts.isReturnStatement(parent)
  );
}

function addConstantResult(node, add, source) {
  if (ts.isArrowFunction(node) && !ts.isBlock(node.body) && node.type) {
    const constant = CONSTANTS[node.type.getText(source)];
    if (constant && node.body.getText(source) !== constant) add('result', node.body, constant);
  }
  if (!ts.isReturnStatement(node) || !node.expression) return;
  const owner = ts.findAncestor(node, ts.isFunctionLike);
  const type = owner?.type?.getText(source) ?? '';
  const isList = /\[\]$/.test(type);
  const constant =
    CONSTANTS[type] ?? (isList ? '[]' : /\bundefined\b/.test(type) ? 'undefined' : undefined);
  if (constant && node.expression.getText(source) !== constant)
    add('result', node.expression, constant);
}

function isRemovable(node) {
  if (ts.isContinueStatement(node) || ts.isThrowStatement(node)) return true;
  return ts.isExpressionStatement(node) && !/^super\b/.test(node.expression.getText());
}
