// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/plot/attention_page.hpp>
#include <heed/plot/color.hpp>
#include <heed/plot/detail/drawing.hpp>
#include <heed/plot/detail/markup.hpp>

namespace heed::detail {

HEED_INLINE std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (const Glyph& glyph : glyphs(text)) {
    const char first = glyph.bytes[0];
    if (first == '<') {
      result += "\\u003c";
    } else {
      if (first == '"' || first == '\\') result += '\\';
      result += glyph.bytes;
    }
  }
  return result + "\"";
}

/// Labels as a JSON list, or numbers if there are none.
HEED_INLINE std::string json_labels(const std::vector<std::string>& labels, Index count) {
  std::string list = "[";
  for (Index i = 0; i < count; ++i) {
    if (i > 0) list += ",";
    list += labels.empty() ? json_string(std::to_string(i))
                           : json_string(labels[static_cast<std::size_t>(i)]);
  }
  return list + "]";
}

/// Floats as base64 of their little-endian bytes.
HEED_INLINE std::string base64_of(const Tensor<float, 4>& values) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(static_cast<std::size_t>(values.size()) * 4);
  for (const float value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (const int shift : {0, 8, 16, 24})
      bytes.push_back(static_cast<std::uint8_t>(bits >> shift));
  }
  return base64_of(std::span<const std::uint8_t>(bytes));
}

inline constexpr std::string_view html_style = R"(
body{font:14px system-ui,sans-serif;color:#222;margin:20px}
h1{font-size:18px}p{color:#666}
table{border-spacing:6px}th{font-weight:400;color:#666;text-align:right;white-space:nowrap}
thead th{text-align:center}
canvas{display:block;image-rendering:pixelated}
td canvas{width:88px;height:88px;cursor:zoom-in;border:1px solid #ccc}
td canvas:focus{outline:3px solid #0072b2}
#large{position:fixed;inset:0;background:#fff;overflow:auto;padding:20px}
#large[hidden]{display:none}
#tip{position:fixed;background:#222;color:#fff;padding:3px 8px;border-radius:4px;
pointer-events:none;white-space:pre;z-index:2}
)";

inline constexpr std::string_view html_script = R"(
const bytes=Uint8Array.from(atob(data),c=>c.charCodeAt(0));
const view=new DataView(bytes.buffer),area=queries*keys;
const weight=(layer,head,q,k)=>view.getFloat32(4*((layer*heads+head)*area+q*keys+k),true);
const color=w=>w!==w?'#808080':colors[Math.max(0,Math.min(255,Math.round(255*w)))];
const tip=document.getElementById('tip'),large=document.getElementById('large');
let shown=null;
function show(event,layer,head,q,k){
  tip.textContent='layer '+layer+', head '+head+'\nquery '+queryLabels[q]+' \u2192 key '+
    keyLabels[k]+'\nweight '+Number(weight(layer,head,q,k).toPrecision(4));
  tip.hidden=false;
  tip.style.left=Math.min(event.clientX+14,innerWidth-tip.offsetWidth-8)+'px';
  tip.style.top=Math.min(event.clientY+14,innerHeight-tip.offsetHeight-8)+'px';
}
function hover(canvas,left,top,cell,layer,head){
  canvas.onmousemove=event=>{
    const box=canvas.getBoundingClientRect();
    const k=Math.floor(((event.clientX-box.left)*canvas.width/box.width-left)/cell);
    const q=Math.floor(((event.clientY-box.top)*canvas.height/box.height-top)/cell);
    if(q>=0&&q<queries&&k>=0&&k<keys)show(event,layer,head,q,k);else tip.hidden=true;
  };
  canvas.onmouseleave=()=>{tip.hidden=true};
}
function paint(context,left,top,cell,layer,head){
  for(let q=0;q<queries;++q)for(let k=0;k<keys;++k){
    context.fillStyle=color(weight(layer,head,q,k));
    context.fillRect(left+cell*k,top+cell*q,cell,cell);
  }
}
function enlarge(layer,head){
  shown=[layer,head];tip.hidden=true;
  const canvas=large.querySelector('canvas'),context=canvas.getContext('2d');
  const font='13px system-ui,sans-serif';context.font=font;
  const cell=Math.max(2,Math.min(34,Math.floor(660/Math.max(queries,keys))));
  const named=cell>=10,wide=list=>Math.max(0,...list.map(t=>context.measureText(t).width));
  const left=named?Math.ceil(wide(queryLabels))+34:34;
  const top=named?Math.ceil(wide(keyLabels)*.71)+16:8;
  canvas.width=left+cell*keys+(named?top:8);canvas.height=top+cell*queries+28;
  context.font=font;context.fillStyle='#222';
  if(named){
    context.textAlign='right';
    queryLabels.forEach((t,q)=>context.fillText(t,left-8,top+cell*(q+.5)+4));
    context.textAlign='left';
    keyLabels.forEach((t,k)=>{context.save();context.translate(left+cell*(k+.5)+2,top-7);
      context.rotate(-Math.PI/4);context.fillText(t,0,0);context.restore()});
  }
  context.textAlign='center';context.fillStyle='#666';
  context.fillText('key',left+cell*keys/2,top+cell*queries+20);
  context.save();context.translate(14,top+cell*queries/2);context.rotate(-Math.PI/2);
  context.fillText('query',0,0);context.restore();
  paint(context,left,top,cell,layer,head);
  hover(canvas,left,top,cell,layer,head);
  large.querySelector('h1').textContent='layer '+layer+', head '+head;
  large.hidden=false;
}
function close(){large.hidden=true;tip.hidden=true;shown=null}
for(const canvas of document.querySelectorAll('td canvas')){
  const layer=Number(canvas.dataset.layer),head=Number(canvas.dataset.head);
  canvas.width=keys;canvas.height=queries;
  paint(canvas.getContext('2d'),0,0,1,layer,head);
  hover(canvas,0,0,1,layer,head);
  canvas.onclick=()=>enlarge(layer,head);
  canvas.onkeydown=event=>{if(event.key==='Enter'){enlarge(layer,head);event.stopPropagation()}};
}
large.onclick=event=>{if(event.target.tagName!=='CANVAS')close()};
document.onkeydown=event=>{
  if(!shown)return;
  const step={ArrowLeft:[0,-1],ArrowRight:[0,1],ArrowUp:[-1,0],ArrowDown:[1,0]}[event.key];
  if(event.key==='Escape')close();
  if(!step)return;
  event.preventDefault();
  enlarge((shown[0]+step[0]+layers)%layers,(shown[1]+step[1]+heads)%heads);
};
)";

/// The thumbnails: one row per layer, one column per head.
HEED_INLINE std::string html_table(Index layers, Index heads) {
  std::string text = "<table><thead><tr><th></th>";
  for (Index head = 0; head < heads; ++head) {
    text += "<th>head " + std::to_string(head) + "</th>";
  }
  text += "</tr></thead>\n";
  for (Index layer = 0; layer < layers; ++layer) {
    text += "<tr><th>layer " + std::to_string(layer) + "</th>";
    for (Index head = 0; head < heads; ++head) {
      text += "<td><canvas tabindex=\"0\" role=\"img\" aria-label=\"layer " +
              std::to_string(layer) + ", head " + std::to_string(head) + "\" data-layer=\"" +
              std::to_string(layer) + "\" data-head=\"" + std::to_string(head) +
              "\"></canvas></td>";
    }
    text += "</tr>\n";
  }
  return text + "</table>\n";
}

/// The constants of the script.
HEED_INLINE std::string html_data(const AttentionPage& page) {
  const auto& extents = page.weights.extents();
  std::string text = "'use strict';const layers=" + std::to_string(extents[0]) +
                     ",heads=" + std::to_string(extents[1]) +
                     ",queries=" + std::to_string(extents[2]) +
                     ",keys=" + std::to_string(extents[3]) +
                     ",\nqueryLabels=" + json_labels(page.query_labels, extents[2]) +
                     ",\nkeyLabels=" + json_labels(page.key_labels, extents[3]) + ",\ncolors=[";
  for (int level = 0; level < 256; ++level) {
    text += (level > 0 ? ",'" : "'") + hex(viridis(level / 255.0)) + "'";
  }
  return text + "],\ndata='" + base64_of(page.weights) + "';";
}

HEED_INLINE std::string html_of(const AttentionPage& page) {
  const auto check = [](const char* what, std::size_t labels, Index extent) {
    if (labels != 0 && static_cast<Index>(labels) != extent) {
      throw_shape_error("to_html: ", labels, " ", what, " labels for weights with ", extent);
    }
  };
  check("query", page.query_labels.size(), page.weights.extent(2));
  check("key", page.key_labels.size(), page.weights.extent(3));
  const std::string title = page.title.empty() ? "Attention" : escaped(page.title);
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
         "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>" +
         title + "</title>\n<style>" + std::string(html_style) + "</style></head>\n<body><h1>" +
         title +
         "</h1>\n<p>A row looks, a column is looked at. Click to enlarge; arrow keys move on, "
         "Escape closes.</p>\n" +
         html_table(page.weights.extent(0), page.weights.extent(1)) +
         "<div id=\"large\" hidden><h1></h1><canvas></canvas></div><div id=\"tip\" hidden></div>\n"
         "<script>" +
         html_data(page) + std::string(html_script) + "</script></body></html>\n";
}

HEED_INLINE std::string html_around(const std::string& title, const std::string& svg) {
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src "
         "data:; "
         "style-src 'unsafe-inline'\">\n<title>" +
         escaped(title) + "</title></head>\n<body>\n" + svg + "</body></html>\n";
}

}  // namespace heed::detail
